"""S-11: whatever an agent says, no script of it runs and no request leaves the page."""

from playwright.async_api import BrowserContext, Request, expect

from support.chat_page import ChatPage
from support.server import Server
from support.session_client import SessionClient, define_scripted

HOSTILE = [
    "<script>window.hurt = 1</script>",
    "<img src=x onerror='window.hurt = 1'>",
    "<svg/onload=window.hurt=1>",
    "<iframe src='https://evil.example/frame'></iframe>",
    "[click](javascript:window.hurt=1)",
    "[click](data:text/html,<script>parent.hurt=1</script>)",
    "![pixel](https://evil.example/pixel.png)",
    "![pixel](//evil.example/pixel.png)",
    "<https://evil.example/auto>",
    '```"><img src=x onerror=window.hurt=1>\ncode\n```',
    "| <img src=x onerror=window.hurt=1> |\n|---|\n| <b onmouseover=window.hurt=1>x |",
    "<style>@import 'https://evil.example/style.css'</style>",
    "<link rel=stylesheet href=https://evil.example/style.css>",
    "<a href='javascript:window.hurt=1' ping='https://evil.example/ping'>x</a>",
    "<form action=https://evil.example><input name=x></form>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hurt=1>",
]


async def test_s11_nothing_an_agent_says_runs_or_calls_home(device: BrowserContext, server: Server) -> None:
    everywhere = "<img src=https://evil.example/t.png onerror='window.hurt = 1'>"
    call = {
        "title": everywhere,
        "kind": everywhere,
        "rawInput": {"command": everywhere, everywhere: everywhere},
        "locations": [{"path": everywhere}],
        "content": [
            {"type": "content", "content": {"type": "text", "text": everywhere}},
            {"type": "diff", "path": everywhere, "oldText": everywhere, "newText": f"{everywhere}!"},
            {
                "type": "content",
                "content": {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4="},
            },
        ],
    }
    steps = [
        {"do": "chunk", "text": "\n\n".join(HOSTILE)},
        {"do": "thought", "text": everywhere},
        {"do": "tool", **call},
        {"do": "plan", "text": everywhere.replace(" ", " ")},
        {"do": "chunk", "text": "the end"},
        {"do": "question", "text": everywhere, "schema": {"properties": {everywhere: {"title": everywhere}}}},
    ]
    await define_scripted(server, "evil", {"prompts": [steps]})
    talk = await SessionClient.begin(server, "evil", title=everywhere)
    await talk.prompt(everywhere)
    await talk.wait_for_event("question", status="pending")
    chat = await ChatPage.at(device, talk)
    foreign: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((server.url, "data:", "blob:")):
            foreign.append(request.url)

    chat.page.on("request", note)
    await chat.page.reload()
    await expect(chat.log).to_contain_text("the end")
    for closed in await chat.log.locator("[aria-expanded=false]").all():
        await closed.click()
    await expect(chat.log.get_by_role("form", name="Question")).to_be_visible()
    for selector in ("script", "iframe", "svg", "style", "link", "img", "form[action]", "[onerror]", "math"):
        await expect(chat.log.locator(selector)).to_have_count(0)
    schemes = await chat.log.locator("a").evaluate_all("all => all.map((a) => new URL(a.href).protocol)")
    assert set(schemes) <= {"https:"}
    assert await chat.page.evaluate("window.hurt") is None
    assert foreign == []
    assert await chat.page.evaluate("window.violations") == []


async def test_a_link_is_shown_before_it_is_opened(chat: ChatPage) -> None:
    await chat.send_message("[[chunk '[bank.example](https://evil.example/login?x=1)']]")
    await chat.log.get_by_role("link", name="bank.example").click()
    shown = chat.page.get_by_role("dialog", name="Link")
    await expect(shown).to_contain_text("https://evil.example/login?x=1")
    opening = shown.get_by_role("link", name="Open")
    await expect(opening).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert len(chat.page.context.pages) == 1
    await chat.page.keyboard.press("Escape")
    await expect(shown).to_have_count(0)
