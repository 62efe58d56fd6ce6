/** Answers of a server that a test makes up. */

/** One whose connection breaks in the middle of its body. */
export function cutAnswer(): Response {
  const body = new ReadableStream({
    start(rest) {
      rest.enqueue(new TextEncoder().encode('{"events":[{"se'))
      rest.error(new TypeError('network error'))
    },
  })
  return new Response(body)
}
