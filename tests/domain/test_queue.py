"""The queue: its messages, their order, and when each is sent to its agent."""

import pytest
from msgspec.structs import replace

from bullpen.domain import prompts, queue
from bullpen.domain.conversation import AgentSession, ForwardedFrom, TurnEnd, TurnStart
from bullpen.domain.errors import Conflict, EmptyMessage, Invalid, NotFound, QueueFull
from bullpen.domain.events import (
    Draft,
    Event,
    Fact,
    SessionEnd,
    SessionStart,
    WorkerActivity,
    WorkerExited,
    WorkerReady,
    WorkerSpawning,
)
from bullpen.domain.prompts import Prompt, PromptRoute
from bullpen.domain.queue import (
    Queue,
    QueueAdded,
    QueueCleared,
    QueueConfigured,
    QueueEdited,
    QueueFailed,
    QueueItem,
    QueueMoved,
    QueueOverrides,
    QueuePaused,
    QueueSending,
    QueueSent,
    QueueSettings,
    QueueTitled,
)
from bullpen.domain.snapshot import Snapshot, fold

SPAWNING = WorkerSpawning(worker_type="agent", name="Agent", run=1, workspace="/")
READY = (SPAWNING, WorkerReady(pid=7), AgentSession(acp_session_id="a", how="new"))
TURN = TurnStart(prompt_id="p")
NOW = 10**9


def session(*facts: Fact) -> Snapshot:
    snapshot = Snapshot(id="s")
    start = SessionStart(session_type="quick", location_path="/", title="x")
    for fact in (start, *facts):
        seq = snapshot.last_seq + 1
        about = (
            () if fact is start or isinstance(fact, SessionEnd) or "queue" in fact.type else ("w", "agent")
        )
        snapshot = fold(snapshot, Event(seq, seq * 1000, fact, *about))
    return snapshot


def item(id: str, message: str = "hello", **more: object) -> QueueAdded:
    return QueueAdded(id=id, message=message, **more)  # type: ignore[arg-type]


def after(before: Queue, *drafts: Draft) -> Queue:
    for draft in drafts:
        before = queue.fold_queue(before, draft.fact, 0)
    return before


def ids(held: Queue) -> list[str]:
    return [each.id for each in held.items]


def three_messages() -> Queue:
    return after(Queue(), *(Draft(item(id)) for id in "abc"))


def test_messages_are_queued_in_the_order_of_their_arrival() -> None:
    assert ids(three_messages()) == ["a", "b", "c"]


@pytest.mark.parametrize("message", ["", " \n"])
def test_an_empty_message_is_refused(message: str) -> None:
    with pytest.raises(EmptyMessage):
        queue.enqueue(Queue(), item("a", message))


def test_a_message_of_images_alone_is_not_empty() -> None:
    assert queue.enqueue(Queue(), item("a", "", image_ids=("i",)))


def test_a_full_queue_refuses_a_message() -> None:
    full = Queue(items=three_messages().items, settings=QueueSettings(max_size=3))
    with pytest.raises(QueueFull, match="limit is 3"):
        queue.enqueue(full, item("d"))


def test_a_disabled_queue_refuses_a_message() -> None:
    with pytest.raises(Conflict, match="turned off"):
        queue.enqueue(Queue(settings=QueueSettings(enabled=False)), item("a"))


@pytest.mark.parametrize(
    ("id", "direction", "order"),
    [("b", "up", "bac"), ("b", "down", "acb"), ("a", "up", "abc"), ("c", "down", "abc"), ("c", "up", "acb")],
)
def test_a_message_moves_by_one_position_and_not_beyond_the_ends(id: str, direction: str, order: str) -> None:
    assert ids(after(three_messages(), *queue.move(three_messages(), id, direction))) == list(order)


def test_a_change_of_an_unknown_message_is_refused() -> None:
    for act in (queue.remove, queue.move_to_front):
        with pytest.raises(NotFound):
            act(three_messages(), "x")
    with pytest.raises(NotFound):
        queue.edit(three_messages(), QueueEdited(id="x", message="new"))
    with pytest.raises(NotFound):
        queue.move(three_messages(), "x", "up")
    with pytest.raises(Invalid):
        queue.move(three_messages(), "a", "sideways")


def test_messages_can_be_edited_removed_made_urgent_and_cleared() -> None:
    edited = queue.edit(three_messages(), QueueEdited(id="b", message="new"))
    assert after(three_messages(), edited).item("b").message == "new"
    assert ids(after(three_messages(), *queue.remove(three_messages(), "b"))) == ["a", "c"]
    urgent = after(three_messages(), *queue.move_to_front(three_messages(), "c"))
    assert ids(urgent) == ["c", "a", "b"]
    assert urgent.item("c").urgent
    assert after(three_messages(), *queue.clear(three_messages())) == Queue()
    assert queue.clear(Queue()) == []


def test_pausing_twice_is_one_pause() -> None:
    paused = after(Queue(), *queue.pause(Queue(), "lunch"))
    assert paused.paused
    assert queue.pause(paused, "again") == []
    assert queue.resume(Queue()) == []
    assert not after(paused, *queue.resume(paused)).paused


def test_settings_out_of_range_are_refused() -> None:
    for wrong in (QueueSettings(max_size=0), QueueSettings(delay_seconds=-1)):
        with pytest.raises(Invalid):
            queue.configure(Queue(), wrong)
    assert after(Queue(), *queue.configure(Queue(), QueueSettings(max_size=2))).settings.max_size == 2


def test_a_failed_turn_pauses_the_queue_unless_an_urgent_message_waits() -> None:
    assert queue.pause_after_failed_turn(Queue(), "cancelled") == []
    assert queue.pause_after_failed_turn(three_messages(), "cancelled") == [QueuePaused(why="cancelled")]
    assert (
        queue.pause_after_failed_turn(
            after(three_messages(), *queue.move_to_front(three_messages(), "b")), "cancelled"
        )
        == []
    )


def order(**more: object) -> Prompt:
    return Prompt(**({"text": "hello", "prompt_id": "p"} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "busy", "expected"),
    [
        ((), "queue", PromptRoute.QUEUE),
        ((SPAWNING,), "queue", PromptRoute.QUEUE),
        ((SPAWNING,), "reject", PromptRoute.QUEUE),
        (READY, "queue", PromptRoute.SEND),
        (READY, "reject", PromptRoute.SEND),
        ((*READY, TURN), "queue", PromptRoute.QUEUE),
        ((*READY, TURN), "interrupt", PromptRoute.INTERRUPT),
        ((*READY, TURN, TurnEnd(stop_reason="end_turn")), "queue", PromptRoute.SEND),
        ((*READY, item("a")), "queue", PromptRoute.QUEUE),
        ((*READY, item("a"), QueuePaused(why="x")), "queue", PromptRoute.SEND),
    ],
)
def test_the_route_of_a_prompt_depends_on_the_state_of_the_agent(
    facts: tuple[Fact, ...], busy: str, expected: PromptRoute
) -> None:
    assert prompts.route_prompt(session(*facts), order(busy=busy), NOW) is expected


def test_an_invalid_prompt_is_refused() -> None:
    with pytest.raises(Conflict, match="busy"):
        prompts.route_prompt(session(*READY, TURN), order(busy="reject"), NOW)
    with pytest.raises(Conflict, match="exited; restart it"):
        prompts.route_prompt(session(*READY, WorkerExited(exit_code=0)), order(), NOW)
    with pytest.raises(Conflict, match="completed"):
        prompts.route_prompt(session(*READY, SessionEnd(status="completed", reason="x")), order(), NOW)
    with pytest.raises(EmptyMessage):
        prompts.route_prompt(session(*READY), order(text=" "), NOW)
    with pytest.raises(Invalid, match="busy is one of"):
        prompts.route_prompt(session(*READY), order(busy="wait"), NOW)
    with pytest.raises(NotFound):
        prompts.route_prompt(session(*READY), order(role="nobody"), NOW)
    with pytest.raises(NotFound):
        prompts.route_prompt(session(*READY), order(worker_id="x"), NOW)


def sent(snapshot: Snapshot, now: int = 10**9) -> list[str]:
    return [each.id for each, _ in prompts.sendable_items(snapshot, now)]


def test_the_first_queued_message_is_sent_to_an_idle_agent() -> None:
    assert sent(session(*READY, item("a"), item("b"))) == ["a"]
    assert sent(session(*READY, TURN, item("a"))) == []
    assert sent(session(SPAWNING, item("a"))) == []
    assert sent(session(*READY, item("a"), QueueFailed(id="a", error="x"), item("b"))) == ["b"]


def test_a_paused_queue_sends_only_urgent_messages() -> None:
    held = session(*READY, QueuePaused(why="x"), item("a"))
    assert sent(held) == []
    assert sent(session(*READY, QueuePaused(why="x"), item("a"), item("b", urgent=True))) == ["b"]


def test_the_delay_starts_when_the_agent_becomes_idle() -> None:
    slow = QueueConfigured(enabled=True, delay_seconds=5, max_size=10, auto_generate_titles=True)
    idle = session(*READY, WorkerActivity(activity="idle", why="x"), slow, item("a"))
    idle_since = idle.worker("w").activity_since
    assert sent(idle, idle_since + 4999) == []
    assert prompts.next_due_time(idle, idle_since) == idle_since + 5000
    assert sent(idle, idle_since + 5000) == ["a"]
    assert prompts.next_due_time(idle, idle_since + 5000) is None


def test_a_scheduled_message_does_not_delay_others_and_keeps_its_position() -> None:
    waiting = session(*READY, item("a", scheduled_time=60_000), item("b"))
    assert sent(waiting, 59_999) == ["b"]
    assert sent(waiting, 60_000) == ["a"]
    alone = session(*READY, item("a", scheduled_time=60_000))
    assert prompts.next_due_time(alone, 1000) == 60_000
    assert prompts.route_prompt(alone, order(), 1000) is PromptRoute.SEND
    assert prompts.route_prompt(alone, order(), 60_000) is PromptRoute.QUEUE
    urgent = after(alone.queue, *queue.move_to_front(alone.queue, "a"))
    assert not prompts.is_scheduled_later(urgent.item("a"), 0)


def test_an_edit_keeps_the_fields_that_it_does_not_name() -> None:
    held = after(Queue(), Draft(item("a", title="mine", scheduled_time=5)))
    edited = after(held, Draft(QueueEdited(id="a", message="other words")))
    assert (edited.item("a").title, edited.item("a").scheduled_time) == ("mine", 5)
    cleared = after(held, Draft(QueueEdited(id="a", message="hello", title=None, scheduled_time=None)))
    assert (cleared.item("a").title, cleared.item("a").scheduled_time) == (None, None)


def test_a_generated_title_is_removed_when_the_text_changes() -> None:
    held = after(Queue(), Draft(item("a")), Draft(QueueTitled(id="a", title="Greeting")))
    assert held.item("a").title == "Greeting"
    assert after(held, Draft(QueueEdited(id="a", message="hello"))).item("a").title == "Greeting"
    assert after(held, Draft(QueueEdited(id="a", message="bye"))).item("a").title is None
    own = after(Queue(), Draft(item("a", title="mine")), Draft(QueueTitled(id="a", title="theirs")))
    assert own.item("a").title == "mine"


def test_a_message_gets_a_title_from_its_own_text_once() -> None:
    held = after(Queue(), Draft(item("a", "Do it. Then rest.")), Draft(item("b", "", image_ids=("i", "j"))))
    titles = [queue.default_title(each) for each in held.items]
    assert titles == [
        Draft(QueueTitled(id="a", title="Do it.")),
        Draft(QueueTitled(id="b", title="2 images")),
    ]
    assert all(queue.needs_title(held, each) for each in held.items)
    titled = after(held, *titles)
    failed = after(held, Draft(QueueFailed(id="a", error="x")))
    off = after(
        held,
        Draft(QueueConfigured(enabled=True, delay_seconds=0, max_size=9, auto_generate_titles=False)),
    )
    for other in (titled, failed, off):
        assert not queue.needs_title(other, other.item("a"))


def test_a_message_is_kept_as_it_was_queued() -> None:
    added = item(
        "a",
        image_ids=("i",),
        client_id="c",
        worker_id="w",
        title="mine",
        scheduled_time=5,
        urgent=True,
        origin=ForwardedFrom(worker_id="v", role="r", what="diff"),
    )
    (held,) = queue.fold_queue(Queue(), added, 7).items
    assert held == QueueItem(
        id="a",
        message="hello",
        queued_at=7,
        image_ids=("i",),
        client_id="c",
        worker_id="w",
        title="mine",
        own_title=True,
        scheduled_time=5,
        urgent=True,
        origin=ForwardedFrom(worker_id="v", role="r", what="diff"),
    )
    assert not queue.fold_queue(Queue(), item("b"), 7).item("b").own_title


def test_each_fact_changes_only_its_own_message() -> None:
    for fact, state in ((QueueSending(id="b"), "sending"), (QueueFailed(id="b", error="x"), "failed")):
        changed = after(three_messages(), Draft(fact))
        assert [each.state for each in changed.items] == ["queued", state, "queued"]
        urgent = after(changed, *queue.move_to_front(changed, "b"))
        assert (ids(urgent), urgent.item("b").state) == (["b", "a", "c"], "queued")
        edited = after(changed, Draft(QueueEdited(id="b", message="new")))
        assert [each.message for each in edited.items] == ["hello", "new", "hello"]
        assert edited.item("b").state == "queued"
    assert ids(after(three_messages(), Draft(QueueSent(id="b")))) == ["a", "c"]
    titled = after(three_messages(), Draft(QueueTitled(id="b", title="t")))
    assert [each.title for each in titled.items] == [None, "t", None]
    assert ids(after(three_messages(), Draft(item("u", urgent=True)))) == ["u", "a", "b", "c"]
    assert after(three_messages(), Draft(QueueMoved(id="gone", direction="up"))) == three_messages()
    assert after(three_messages(), Draft(TurnEnd(stop_reason="x"))) == three_messages()


def test_settings_are_inherited_until_they_are_changed_in_the_session() -> None:
    wanted = QueueSettings(enabled=False, delay_seconds=2, max_size=3, auto_generate_titles=False)
    fact = QueueConfigured(
        enabled=False, delay_seconds=2, max_size=3, auto_generate_titles=False, inherited=True
    )
    assert queue.inherit_settings(Queue(), wanted) == [Draft(fact)]
    inherited = after(Queue(), Draft(fact))
    assert inherited.settings == wanted
    assert queue.inherit_settings(inherited, wanted) == []
    own = after(Queue(), Draft(replace(fact, inherited=False)))
    assert queue.inherit_settings(own, QueueSettings()) == []
    assert QueueOverrides(max_size=5, enabled=False).over(QueueSettings(delay_seconds=2)) == QueueSettings(
        max_size=5, enabled=False, delay_seconds=2
    )
    with pytest.raises(Invalid):
        QueueOverrides(max_size=0).over(QueueSettings())


def test_only_messages_in_state_queued_are_waiting_and_paused() -> None:
    failed = after(Queue(), Draft(item("a")), Draft(QueueFailed(id="a", error="x")))
    assert [Queue().waiting, failed.waiting, three_messages().waiting] == [False, False, True]
    assert queue.pause_after_failed_turn(failed, "x") == []
    paused = after(three_messages(), Draft(QueuePaused(why="x")))
    assert queue.pause_after_failed_turn(paused, "x") == []
    assert queue.clear(after(Queue(), Draft(QueuePaused(why="x")))) == [Draft(QueueCleared())]
