import { expect, test } from 'vitest'
import { MarkdownBlocks } from './blocks.ts'
import { parse } from './parse.ts'
import { textOf, type Element, type Node } from './tree.ts'

const HOSTILE = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg/onload=alert(1)>',
  '<iframe src="javascript:alert(1)"></iframe>',
  '[a](javascript:alert(1))',
  '[a](JaVaScRiPt:alert(1))',
  '[a](java\nscript:alert(1))',
  '[a](&#x6A;avascript:alert(1))',
  '[a](\x01javascript:alert(1))',
  '[a](vbscript:msgbox(1))',
  '[a](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)',
  '[a](file:///etc/passwd)',
  '[a](//evil.example/x)',
  '![a](https://evil.example/pixel.png)',
  '![a](javascript:alert(1))',
  '![a](data:image/svg+xml,<svg/onload=alert(1)>)',
  '<javascript:alert(1)>',
  '[a]: javascript:alert(1)\n\n[a]',
  '[a](https://x "onmouseover=alert(1)")',
  '[a](https://x" onmouseover="alert(1))',
  '```"><img src=x onerror=alert(1)>\ncode\n```',
  '`<img src=x onerror=alert(1)>`',
  '| <img src=x onerror=alert(1)> |\n|---|\n| [x](javascript:1) |',
  '<a href="javascript:alert(1)">x</a>',
  '<style>@import "https://evil.example"</style>',
  '<form action=https://evil.example><button>x',
  '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
]
const TAGS = /^(p|h[1-6]|ul|ol|li|blockquote|hr|br|strong|em|s|code|pre|table|thead|tbody|tr|th|td|div|span|a|figure|figcaption|button)$/
const ATTRIBUTES = /^(href|title|rel|target|class|start|type|tabindex|aria-label|data-language)$/

function* elements(nodes: readonly Node[]): Generator<Element> {
  for (const node of nodes) {
    if (typeof node === 'string') continue
    yield node
    yield* elements(node.children)
  }
}

const nodesOf = (text: string) => parse(text).map((block) => block.node)
const shape = (node: Node): string =>
  typeof node === 'string' ? node : `<${node.tag}>${node.children.map(shape).join('')}</${node.tag}>`
const html = (text: string) => nodesOf(text).map(shape).join('')

test.each(HOSTILE)('%j becomes allowed elements and attributes only', (text) => {
  for (const { tag, attributes } of elements(nodesOf(text))) {
    expect(tag).toMatch(TAGS)
    for (const name of Object.keys(attributes)) expect(name).toMatch(ATTRIBUTES)
    if ('href' in attributes) expect(attributes.href).toMatch(/^(https?:\/\/|mailto:)/)
  }
})

test('raw HTML is shown as text', () => expect(nodesOf('a <b onclick=x>b</b>').map(textOf)).toEqual(['a <b onclick=x>b</b>']))

test('a remote image becomes a link that shows its address', () => {
  const [link] = [...elements(nodesOf('![cat](https://evil.example/p.png)'))].filter(({ tag }) => tag === 'a')
  expect(link?.attributes).toMatchObject({ href: 'https://evil.example/p.png', title: 'https://evil.example/p.png', rel: 'noopener noreferrer nofollow' })
})

test('a path is shown with its target and is no link', () => {
  const [place] = [...elements(nodesOf('[main](src/main.py)'))].filter(({ tag }) => tag === 'span')
  expect(place?.attributes).toEqual({ class: 'place', title: 'src/main.py' })
})

test('lists, tables, code and emphasis have their elements', () => {
  expect(html('1. one\n2. two')).toBe('<ol><li>one</li><li>two</li></ol>')
  expect(html('- [x] done\n- [ ] open')).toBe('<ul><li>☑ done</li><li>☐ open</li></ul>')
  expect(html('**a** *b* ~~c~~ `d`')).toBe('<p><strong>a</strong> <em>b</em> <s>c</s> <code>d</code></p>')
  expect(html('|a|\n|-|\n|b|')).toContain('<th>a</th>')
  expect(html('```py\nx = 1\n```')).toContain('<pre><code>x = 1</code></pre>')
})

const LONG = ['# Title', 'Some *text* with [a link][1].', '- one\n- two\n\n  more of two\n- three', '```py\nx = 1\n\ny = 2\n```', '> quoted\n> again', '|a|b|\n|-|-|\n|1|2|', 'The end.', '[1]: https://one.example'].join('\n\n')

/** Return the nodes after a text arrived in pieces, and the number of nodes parsed on the way. */
function streamed(text: string, size: number): { nodes: Node[]; parsed: number } {
  const blocks = new MarkdownBlocks()
  let closed: Node[] = []
  let open: readonly Node[] = []
  let parsed = 0
  for (let end = size; ; end += size) {
    const done = end >= text.length
    const update = blocks.update(text.slice(0, end), !done)
    if (update.replaced) closed = []
    closed.push(...update.nodes.slice(0, update.closed))
    open = update.nodes.slice(update.closed)
    parsed += update.nodes.length
    if (done) return { nodes: [...closed, ...open], parsed }
  }
}

test.each([1, 2, 3, 7, 50, 1000])('pieces of %i characters give the same nodes as the whole text', (size) => {
  expect(streamed(LONG, size).nodes).toEqual(nodesOf(LONG))
})

test('closed blocks are not parsed again', () => {
  const paragraphs = Array.from({ length: 300 }, (_, n) => `paragraph ${n}`).join('\n\n')
  expect(streamed(paragraphs, 20).parsed).toBeLessThan(1000)
})

test('a replaced text is parsed from its beginning', () => {
  const blocks = new MarkdownBlocks()
  blocks.update('one\n\ntwo', true)
  expect(blocks.update('three', true)).toMatchObject({ replaced: true, nodes: [{ tag: 'p', children: ['three'] }] })
})
