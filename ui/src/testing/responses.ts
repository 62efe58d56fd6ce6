/** Server answers for tests. */

/** Return an answer whose connection breaks in the middle of its body. */
export function cutAnswer(): Response {
  const body = new ReadableStream({
    start(rest) {
      rest.enqueue(new TextEncoder().encode('{"events":[{"se'))
      rest.error(new TypeError('network error'))
    },
  })
  return new Response(body)
}
