"""An ACP agent that sends numbered updates at a fixed rate, each with the time of its sending."""

import json
import sys
import time


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session: str, call: dict[str, object]) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"toolCallId": "c", **call}})


def send_updates(session: str, rate: int, count: int) -> None:
    update(session, {"sessionUpdate": "tool_call", "title": "count", "status": "in_progress"})
    began = time.monotonic()
    for number in range(count):
        if (wait := began + number / rate - time.monotonic()) > 0:
            time.sleep(wait)
        output = {"number": number, "at": time.monotonic_ns()}
        update(session, {"sessionUpdate": "tool_call_update", "rawOutput": output})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
            case "session/new":
                send(id=message["id"], result={"sessionId": "one"})
            case "session/prompt":
                rate, count = map(int, message["params"]["prompt"][0]["text"].split())
                send_updates(message["params"]["sessionId"], rate, count)
                send(id=message["id"], result={"stopReason": "end_turn"})
            case _ if "id" in message:
                send(id=message["id"], result=None)


main()
