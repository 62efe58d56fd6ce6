/**
 * Markdown as a tree of elements we know. Nothing an agent says is ever parsed as HTML: raw HTML stays text, tags
 * and attributes come from the lists below, and no address is fetched or followed before a person has seen it.
 */
import MarkdownIt, { type Token } from 'markdown-it'
import { element, type Element, type Node } from './tree.ts'

/** One block of the outermost level, and the line it begins at. */
export interface Block {
  readonly line: number
  readonly node: Node
}

const TAGS = new Set(['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'li', 'blockquote', 'hr', 'br', 'strong', 'em', 's', 'code', 'table', 'thead', 'tbody', 'tr', 'th', 'td'])
const SAFE = /^(https?:\/\/|mailto:)/i
const TASK = /^\[([ xX])\] /

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false })
// A bare word with a dot is more often a file than a site.
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false })
// Whatever it is, it becomes something that can be read; `linked` decides what can be opened.
markdown.validateLink = () => true

export function parse(text: string): Block[] {
  const builder = new Builder()
  for (const token of markdown.parse(text, {})) builder.take(token)
  return builder.blocks
}

class Builder {
  readonly blocks: Block[] = []
  readonly #open: { token: Token; children: Node[] }[] = []

  take(token: Token): void {
    if (token.type === 'inline') return this.#takeAll(token.children ?? [])
    if (token.hidden) return // the paragraph of a tight list
    if (token.nesting === 1) this.#open.push({ token, children: [] })
    else if (token.nesting === -1) this.#close()
    else this.#add(leaf(token), token)
  }

  #takeAll(tokens: readonly Token[]): void {
    for (const token of tokens) this.take(token)
  }

  #close(): void {
    const done = this.#open.pop()
    if (done) this.#add(container(done.token, done.children), done.token)
  }

  #add(node: Node, token: Token): void {
    const parent = this.#open.at(-1)
    if (parent) parent.children.push(node)
    else this.blocks.push({ line: token.map?.[0] ?? 0, node })
  }
}

function container(token: Token, children: Node[]): Node {
  if (token.type === 'link_open') return linked(attribute(token, 'href'), children)
  if (token.tag === 'table') return element('div', { class: 'table' }, [element('table', {}, children)])
  if (token.tag === 'li') return element('li', {}, withTask(children))
  return TAGS.has(token.tag) ? element(token.tag, attributes(token), children) : element('span', {}, children)
}

function leaf(token: Token): Node {
  switch (token.type) {
    case 'text':
    case 'text_special':
      return token.content
    case 'softbreak':
      return '\n'
    case 'code_inline':
      return element('code', {}, [token.content])
    case 'fence':
    case 'code_block':
      return codeBlock(token.content, token.info.trim().split(/\s+/)[0] ?? '')
    case 'image': // never loaded: its address may tell a stranger that it was read
      return linked(attribute(token, 'src'), [`🖼 ${token.content || 'image'}`])
    default:
      return TAGS.has(token.tag) ? element(token.tag) : token.content
  }
}

export function codeBlock(content: string, language: string): Element {
  const name = /^[\w+#.-]{1,32}$/.test(language) ? language : ''
  return element('figure', { class: 'code', 'data-language': name.toLowerCase() }, [
    element('figcaption', {}, [element('span', {}, [name]), element('button', { type: 'button', class: 'copy', 'aria-label': 'Copy code' }, ['Copy'])]),
    element('pre', { tabindex: '0' }, [element('code', {}, [content.replace(/\n$/, '')])]),
  ])
}

/** A link only to the web and to mail; anything else is shown with its address and leads nowhere. */
function linked(href: string, children: Node[]): Element {
  if (!SAFE.test(href)) return element('span', { class: 'place', title: href }, children)
  return element('a', { href, title: href, rel: 'noopener noreferrer nofollow', target: '_blank' }, children)
}

function attributes(token: Token): Record<string, string> {
  const start = token.tag === 'ol' ? attribute(token, 'start') : ''
  if (start) return { start: String(Number(start) || 1) }
  const align = token.tag === 'td' || token.tag === 'th' ? /(right|center)/.exec(attribute(token, 'style'))?.[1] : undefined
  return align ? { class: align } : {}
}

function attribute(token: Token, name: string): string {
  return String(token.attrGet(name) ?? '')
}

function withTask(children: readonly Node[]): readonly Node[] {
  const [first, ...rest] = children
  if (typeof first === 'string') {
    const done = TASK.exec(first)?.[1]
    return done === undefined ? children : [done === ' ' ? '☐ ' : '☑ ', first.slice(4), ...rest]
  }
  return first?.tag === 'p' ? [{ ...first, children: withTask(first.children) }, ...rest] : children
}
