"""An agent that says a numbered thing so often a second, each with the time it was said."""

import json
import sys
import time


def say(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session: str, call: dict[str, object]) -> None:
    say(method="session/update", params={"sessionId": session, "update": {"toolCallId": "c", **call}})


def talk(session: str, rate: int, count: int) -> None:
    update(session, {"sessionUpdate": "tool_call", "title": "talk", "status": "in_progress"})
    began = time.monotonic()
    for number in range(count):
        if (wait := began + number / rate - time.monotonic()) > 0:
            time.sleep(wait)
        said = {"number": number, "at": time.monotonic_ns()}
        update(session, {"sessionUpdate": "tool_call_update", "rawOutput": said})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                say(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
            case "session/new":
                say(id=message["id"], result={"sessionId": "one"})
            case "session/prompt":
                rate, count = map(int, message["params"]["prompt"][0]["text"].split())
                talk(message["params"]["sessionId"], rate, count)
                say(id=message["id"], result={"stopReason": "end_turn"})
            case _ if "id" in message:
                say(id=message["id"], result=None)


main()
