"""Markup in the output of an agent runs no script and sends no request to another server."""

from playwright.async_api import BrowserContext, Request, expect

from support.chat_page import ChatPage
from support.server import Server
from support.session_client import SessionClient, define_scripted

HOSTILE = [
    "<script>window.injected = 1</script>",
    "<img src=x onerror='window.injected = 1'>",
    "<svg/onload=window.injected=1>",
    "<iframe src='https://evil.example/frame'></iframe>",
    "[click](javascript:window.injected=1)",
    "[click](data:text/html,<script>parent.injected=1</script>)",
    "![pixel](https://evil.example/pixel.png)",
    "![pixel](//evil.example/pixel.png)",
    "<https://evil.example/auto>",
    '```"><img src=x onerror=window.injected=1>\ncode\n```',
    "| <img src=x onerror=window.injected=1> |\n|---|\n| <b onmouseover=window.injected=1>x |",
    "<style>@import 'https://evil.example/style.css'</style>",
    "<link rel=stylesheet href=https://evil.example/style.css>",
    "<a href='javascript:window.injected=1' ping='https://evil.example/ping'>x</a>",
    "<form action=https://evil.example><input name=x></form>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.injected=1>",
]


async def test_text_of_an_agent_runs_no_script_and_makes_no_request(
    device: BrowserContext, server: Server
) -> None:
    markup = "<img src=https://evil.example/t.png onerror='window.injected = 1'>"
    call = {
        "title": markup,
        "kind": markup,
        "rawInput": {"command": markup, markup: markup},
        "locations": [{"path": markup}],
        "content": [
            {"type": "content", "content": {"type": "text", "text": markup}},
            {"type": "diff", "path": markup, "oldText": markup, "newText": f"{markup}!"},
            {
                "type": "content",
                "content": {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4="},
            },
        ],
    }
    steps = [
        {"do": "chunk", "text": "\n\n".join(HOSTILE)},
        {"do": "thought", "text": markup},
        {"do": "tool", **call},
        {"do": "plan", "text": markup.replace(" ", " ")},
        {"do": "chunk", "text": "the end"},
        {"do": "question", "text": markup, "schema": {"properties": {markup: {"title": markup}}}},
    ]
    await define_scripted(server, "evil", {"prompts": [steps]})
    talk = await SessionClient.begin(server, "evil", title=markup)
    await talk.prompt(markup)
    await talk.wait_for_event("question", status="pending")
    chat = await ChatPage.at(device, talk)
    foreign_urls: list[str] = []

    def record_request(request: Request) -> None:
        if not request.url.startswith((server.url, "data:", "blob:")):
            foreign_urls.append(request.url)

    chat.page.on("request", record_request)
    await chat.page.reload()
    await expect(chat.log).to_contain_text("the end")
    for closed in await chat.log.locator("[aria-expanded=false]").all():
        await closed.click()
    await expect(chat.log.get_by_role("form", name="Question")).to_be_visible()
    for selector in ("script", "iframe", "svg", "style", "link", "img", "form[action]", "[onerror]", "math"):
        await expect(chat.log.locator(selector)).to_have_count(0)
    schemes = await chat.log.locator("a").evaluate_all("all => all.map((a) => new URL(a.href).protocol)")
    assert set(schemes) == {"https:"}
    assert await chat.page.evaluate("window.injected") is None
    assert foreign_urls == []
    assert await chat.page.evaluate("window.violations") == []


async def test_a_link_is_shown_before_it_is_opened(chat: ChatPage) -> None:
    pages = chat.page.context.pages
    await chat.send_message("[[chunk '[bank.example](https://evil.example/login?x=1)']]")
    await chat.log.get_by_role("link", name="bank.example").click()
    dialog = chat.page.get_by_role("dialog", name="Link")
    await expect(dialog).to_contain_text("https://evil.example/login?x=1")
    link = dialog.get_by_role("link", name="Open")
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert chat.page.context.pages == pages
    await chat.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
