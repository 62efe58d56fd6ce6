"""Which refusals of the sandbox are in the inbox, and how they leave it."""

from bullpen.domain.attention import attention_of
from bullpen.domain.events import SandboxRefusal, WorkerActivity
from bullpen.domain.inbox import inbox_signature, open_items
from bullpen.domain.sandbox_refusals import MAX_REFUSALS, mark_refusals_seen
from domain.folding import about, after, running, session

HOST = SandboxRefusal(kind="host", target="example.org", program="curl")
FILE = SandboxRefusal(kind="read", target="/srv/notes.txt", program="Agent")
LOCAL = SandboxRefusal(kind="host", target="localhost", program="curl", can_be_allowed=False)
AGENT = running("a", "agent")
REFUSED = session(*AGENT, *about("a", HOST, HOST, LOCAL, FILE))


def test_each_host_and_path_that_can_be_allowed_is_one_item() -> None:
    items = open_items(REFUSED)
    assert [(each.kind, each.seq, each.refused, each.text) for each in items] == [
        ("refused", 4, ("host", "example.org"), "curl may not reach example.org"),
        ("refused", 7, ("read", "/srv/notes.txt"), "Agent may not read /srv/notes.txt"),
    ]
    assert not any(each.needs_input for each in items)


def test_a_refusal_that_a_user_has_seen_does_not_come_back() -> None:
    (draft,) = mark_refusals_seen(REFUSED.refusals, 4)
    seen = after(REFUSED, draft, *about("a", HOST))
    assert [each.seq for each in open_items(seen)] == [7]
    assert inbox_signature(seen) != inbox_signature(REFUSED)
    assert mark_refusals_seen(seen.refusals, 4) == []


def test_without_a_number_all_refusals_are_seen_and_another_number_marks_none() -> None:
    assert open_items(after(REFUSED, *mark_refusals_seen(REFUSED.refusals, None))) == []
    assert mark_refusals_seen(REFUSED.refusals, 5) == []


def test_a_refusal_is_no_request_that_the_session_waits_for() -> None:
    asking = after(REFUSED, *about("a", WorkerActivity(activity="asking", why="a question")))
    assert attention_of(asking).why == "a question"


def test_an_agent_that_tries_many_paths_does_not_fill_the_inbox() -> None:
    tried = [SandboxRefusal(kind="read", target=f"/srv/{n}", program="Agent") for n in range(200)]
    assert len(open_items(session(*AGENT, *about("a", *tried)))) == MAX_REFUSALS
