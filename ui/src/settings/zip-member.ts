/** Read one small file of a zip archive in the browser. */

const END_SIGNATURE = 0x06054b50
const ENTRY_SIGNATURE = 0x02014b50
const END_SIZE = 22
const MAX_COMMENT = 65_535
const MAX_MEMBER_BYTES = 4 << 20
const STORED = 0
const DEFLATED = 8

/** Return the text of a member, or undefined if the file is no zip archive or has no such member. */
export async function readZipMember(file: Blob, name: string): Promise<string | undefined> {
  const tail = await view(file, Math.max(0, file.size - END_SIZE - MAX_COMMENT), file.size)
  for (let at = tail.byteLength - END_SIZE; at >= 0; at--) {
    if (tail.getUint32(at, true) !== END_SIGNATURE) continue
    const [size, offset] = [tail.getUint32(at + 12, true), tail.getUint32(at + 16, true)]
    return readFromDirectory(file, await view(file, offset, offset + size), name)
  }
  return undefined
}

/** Return the text of the member with this name in the central directory, or undefined. */
async function readFromDirectory(file: Blob, directory: DataView, name: string): Promise<string | undefined> {
  let at = 0
  while (at + 46 <= directory.byteLength && directory.getUint32(at, true) === ENTRY_SIGNATURE) {
    const nameLength = directory.getUint16(at + 28, true)
    const entryName = new TextDecoder().decode(new Uint8Array(directory.buffer, at + 46, nameLength))
    if (entryName === name) return readMember(file, { method: directory.getUint16(at + 10, true), size: directory.getUint32(at + 20, true), offset: directory.getUint32(at + 42, true) })
    at += 46 + nameLength + directory.getUint16(at + 30, true) + directory.getUint16(at + 32, true)
  }
  return undefined
}

/** Return the text of a member; undefined if it is too large or compressed in another way. */
async function readMember(file: Blob, { method, size, offset }: { method: number; size: number; offset: number }): Promise<string | undefined> {
  if (size > MAX_MEMBER_BYTES || (method !== STORED && method !== DEFLATED)) return undefined
  const header = await view(file, offset, offset + 30)
  const start = offset + 30 + header.getUint16(26, true) + header.getUint16(28, true)
  const content = file.slice(start, start + size)
  return method === STORED ? content.text() : new Response(content.stream().pipeThrough(new DecompressionStream('deflate-raw'))).text()
}

/** Return the bytes of a part of a file. */
async function view(file: Blob, from: number, to: number): Promise<DataView> {
  return new DataView(await file.slice(from, to).arrayBuffer())
}
