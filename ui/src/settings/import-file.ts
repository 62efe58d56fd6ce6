/** Import a file that the user chose: a recording of Bullpen, or a sessions.json of agent-console. */
import { ApiError } from '../api/http.ts'
import { rest } from '../api/rest.ts'
import type { Imported } from '../api/types/importing.ts'
import { readZipMember } from './zip-member.ts'

const METADATA = 'metadata.json'

/** Import a file, or throw `ApiError` with a sentence that says what is wrong with it. */
export async function importFile(file: File): Promise<Imported> {
  return file.name.toLowerCase().endsWith('.json') ? importEntries(file) : importRecording(file)
}

/** Import the list in a sessions.json; raise an ApiError if the file has none. */
async function importEntries(file: File): Promise<Imported> {
  const entries = parse(await file.text())
  if (!Array.isArray(entries)) throw invalid(`${file.name} is not a sessions.json: it does not contain a list of sessions.`)
  return rest.importSessions(entries)
}

/** Upload an exported recording under the id in its metadata; raise an ApiError if the file has none. */
async function importRecording(file: File): Promise<Imported> {
  const metadata = parse((await readZipMember(file, METADATA)) ?? '') as { id?: unknown } | undefined
  if (typeof metadata?.id !== 'string') throw invalid(`${file.name} is not a recording that Bullpen exported.`)
  return rest.importRecording(metadata.id, file)
}

/** Return the value of a JSON text, or undefined if it is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function invalid(message: string): ApiError {
  return new ApiError(400, 'invalid', message)
}
