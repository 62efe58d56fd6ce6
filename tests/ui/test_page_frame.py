"""The frame of the page: connection, shortcuts, palette, menus, layout on a phone, title and offline page."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Route, WebSocket, expect

from support.pages import TerminalPage, login_url, new_profile
from support.repositories import Repo
from support.server import Server

DEADLINE = 60.0  # seconds
# Types a text letter by letter, without a pause in which a draft could be written.
TYPE_WITHOUT_PAUSE = """(field, text) => {
  for (const [index] of [...text].entries()) {
    field.value = text.slice(0, index + 1)
    field.dispatchEvent(new InputEvent('input', { bubbles: true }))
  }
}"""


async def open_page(device: BrowserContext, server: Server, hash: str = "#/") -> Page:
    page = await device.new_page()
    await page.goto(f"{server.url}/{hash}")
    await expect(connection_light(page)).to_contain_text("Connected")
    return page


def connection_light(page: Page) -> Any:
    return page.get_by_role("button", name="Connection:")


async def until(condition: Any) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.05)


async def test_the_page_connects_when_it_is_opened(device: BrowserContext, server: Server) -> None:
    page = await device.new_page()
    async with page.expect_websocket(lambda socket: socket.url.endswith("/ws/dashboard")):
        await page.goto(server.url)
    await expect(connection_light(page)).to_contain_text("Connected")


async def test_the_connection_light_shows_that_the_page_reconnects_to_a_killed_server(
    device: BrowserContext, server: Server
) -> None:
    page = await open_page(device, server)
    await server.kill()
    await expect(connection_light(page)).to_contain_text("Reconnecting")
    await server.start()
    await expect(connection_light(page)).to_contain_text("Connected", timeout=DEADLINE * 1000)


async def test_an_alert_says_that_the_server_does_not_answer_until_it_answers(
    device: BrowserContext, server: Server
) -> None:
    page = await open_page(device, server)
    await server.kill()
    await page.get_by_role("button", name="New terminal").click()
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("The server does not answer.")
    await server.start()
    await expect(connection_light(page)).to_contain_text("Connected", timeout=DEADLINE * 1000)
    await expect(alert).to_have_count(0)


@pytest.mark.own_server
async def test_the_connection_light_shows_that_there_is_no_network(
    device: BrowserContext, server: Server
) -> None:
    page = await open_page(device, server)
    await server.kill()
    await device.set_offline(True)
    await expect(connection_light(page)).to_contain_text("Disconnected")
    await device.set_offline(False)
    await server.start()
    await expect(connection_light(page)).to_contain_text("Connected", timeout=DEADLINE * 1000)


async def test_a_typed_prompt_survives_a_reload_without_a_write_for_every_letter(
    device: BrowserContext, server: Server
) -> None:
    page = await open_page(device, server, "#/new")
    await page.evaluate(
        """() => {
          window.writes = 0
          const set = Storage.prototype.setItem
          Storage.prototype.setItem = function (key, value) {
            if (key === 'bullpen.view.start') window.writes++
            return set.call(this, key, value)
          }
        }"""
    )
    await page.get_by_label("Prompt").evaluate(TYPE_WITHOUT_PAUSE, "a long and careful prompt")
    await expect(page.get_by_label("Prompt")).to_have_value("a long and careful prompt")
    await until(lambda: page.evaluate("window.writes > 0"))
    assert await page.evaluate("window.writes") < len("a long and careful prompt") / 2
    await page.reload()
    await expect(page.get_by_label("Prompt")).to_have_value("a long and careful prompt")


async def test_closing_the_tab_of_an_agent_can_stop_it_and_closes_the_socket(
    device: BrowserContext, server: Server
) -> None:
    session = await server.new_session(agentId="demo", title="to be closed")
    page = await device.new_page()
    sockets: list[WebSocket] = []

    def record_socket(socket: WebSocket) -> None:
        if "/ws/session/" in socket.url:
            sockets.append(socket)

    page.on("websocket", record_socket)
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await expect(page.get_by_role("log")).to_be_visible()
    async with asyncio.timeout(DEADLINE):
        while not sockets:
            await asyncio.sleep(0.05)
    await page.keyboard.press("Alt+W")
    await page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    await expect(page.get_by_role("tab")).to_have_count(0)

    async def workers_ended() -> bool:
        workers = (await server.call("GET", f"/api/sessions/{session['id']}"))["workers"]
        return all(worker["state"] == "terminated" for worker in workers)

    async def sockets_closed() -> bool:
        return all(socket.is_closed() for socket in sockets)

    await until(workers_ended)
    await page.get_by_role("link", name="Bullpen, home").click()
    await until(sockets_closed)


@pytest.mark.intervals(viewer_grace_after_leave=0.5)
async def test_the_page_tells_the_server_when_the_user_leaves_it(
    device: BrowserContext, server: Server
) -> None:
    session = await server.new_session(onLastDisconnect="terminate", title="Left alone")
    path = f"/api/sessions/{session['id']}"
    page = await open_page(device, server, f"#/session/{session['id']}")
    await expect(page.get_by_role("heading", name="Left alone")).to_be_visible()
    await page.goto("about:blank")

    async def leave_recorded() -> bool:
        return any(line["path"] == f"{path}/leave" for line in server.audit_lines())

    async def ended() -> bool:
        return bool((await server.call("GET", path))["status"] == "completed")

    await until(leave_recorded)
    await until(ended)


async def test_a_refusal_of_the_server_is_shown_in_the_dialog_of_the_request(
    device: BrowserContext, server: Server
) -> None:
    page = await open_page(device, server)
    await page.get_by_role("button", name="New session").click()
    dialog = page.get_by_role("dialog", name="New session")
    await dialog.get_by_role("button", name="Add a project").click()
    await dialog.get_by_label("Directory").fill("/nowhere")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("outside the workspace root")
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).not_to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_the_palette_opens_sessions_and_settings(device: BrowserContext, server: Server) -> None:
    await server.new_session(title="Fix the flaky import")
    page = await open_page(device, server)
    await page.keyboard.press("Control+K")
    await page.get_by_role("combobox", name="Command").fill("flaky")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Fix the flaky import")).to_be_visible()
    await page.keyboard.press("Control+K")
    await page.get_by_role("combobox", name="Command").fill("settings keys")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Keys")).to_be_visible()


async def test_a_session_is_renamed_from_its_menu_and_from_the_palette(
    device: BrowserContext, server: Server
) -> None:
    session = await server.new_session(title="Before")
    page = await open_page(device, server, f"#/session/{session['id']}")
    title = page.get_by_role("dialog", name="Rename session").get_by_label("Title")
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Rename").click()
    await title.fill("After")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="After")).to_be_visible()
    await expect(title).not_to_be_visible()
    await page.keyboard.press("Control+K")
    await page.get_by_role("combobox", name="Command").fill("rename")
    await page.keyboard.press("Enter")
    await expect(title).to_be_focused()
    await expect(title).to_have_value("After")


async def test_a_session_is_renamed_without_a_mouse(device: BrowserContext, server: Server) -> None:
    session = await server.new_session(title="Before")
    page = await open_page(device, server, f"#/session/{session['id']}")
    for key, name in (("Enter", "By Enter"), ("Space", "By Space")):
        await page.get_by_role("heading", level=1).get_by_role("button").focus()
        await page.keyboard.press(key)
        await expect(page.get_by_label("Title")).to_be_focused()
        await page.keyboard.insert_text(name)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name=name)).to_be_visible()


async def test_the_name_of_no_panel_is_cut_off(device: BrowserContext, server: Server) -> None:
    session = await server.new_session(title="Narrow")
    page = await open_page(device, server, f"#/session/{session['id']}")
    await page.get_by_role("button", name="Show the panel").click()
    tabs = page.get_by_role("tablist", name="Panels")
    for width in (1280, 1000, 360):
        await page.set_viewport_size({"width": width, "height": 700})
        assert await tabs.evaluate("list => list.scrollWidth <= list.clientWidth"), width


async def test_keys_can_be_changed_and_the_help_shows_the_changed_keys(
    device: BrowserContext, server: Server
) -> None:
    page = await open_page(device, server, "#/settings/keys")
    await page.get_by_role("button", name="Keys of Sidebar").click()
    await page.keyboard.press("Control+Alt+S")
    await expect(page.get_by_role("button", name="Keys of Sidebar")).to_contain_text("Ctrl+Alt+S")
    await page.get_by_role("button", name="Keys of Session 2 of the list").click()
    await page.keyboard.press("Control+Alt+2")
    allow = page.get_by_role("button", name="Keys of Allow:")
    await allow.click()
    await page.keyboard.press("j")  # a key of the inbox
    await expect(page.get_by_role("status").filter(has_text="The inbox uses j, k and s")).to_be_visible()
    await page.keyboard.press("y")
    await expect(allow).to_have_text("y")
    await page.reload()
    await expect(page.get_by_role("navigation", name="Sessions")).to_be_visible()
    await page.keyboard.press("Control+Alt+S")
    await expect(page.get_by_role("navigation", name="Sessions")).to_have_count(0)
    await page.keyboard.press("Control+/")
    for words in ("Ctrl+Alt+S", "Session 2 of the list", "Ctrl+Alt+2", "When a permission has the focus"):
        await expect(page.get_by_role("dialog")).to_contain_text(words)
    await expect(page.get_by_role("dialog").get_by_text("y", exact=True)).to_be_visible()


async def test_no_shortcut_is_reserved_by_the_browser_and_all_views_show_the_same_shortcuts(
    device: BrowserContext, server: Server
) -> None:
    session = await server.new_session(title="Here")
    await server.new_terminal(session["id"])
    page = await open_page(device, server, f"#/session/{session['id']}")
    await expect(page.get_by_label("Terminal input")).to_be_focused()  # it takes the focus once it is there
    await page.get_by_role("heading", name="Here").click()
    await page.keyboard.press("Escape")
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keys")
    await expect(sheet).to_be_visible()
    titles = await sheet.locator("dt").all_inner_texts()
    keys = dict(zip(titles, await sheet.locator("dd").all_inner_texts(), strict=True))
    reserved = {f"Ctrl+{shift}{key}" for shift in ("", "Shift+") for key in "NTWQ"}
    assert not reserved & set(keys.values())
    assert keys["New session"] == "Alt+N"
    assert keys["Keys and help"] == "Ctrl+/ or ?"
    await sheet.get_by_role("button", name="Close").click()
    await expect(sheet).to_have_count(0)

    await page.keyboard.press("Control+K")
    await page.get_by_role("combobox", name="Command").fill("keys and help")
    await expect(page.get_by_role("option", name="Keys and help")).to_contain_text(keys["Keys and help"])
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Session menu").click()
    for title in ("Split right", "Archive session"):
        await expect(page.get_by_role("menuitem", name=title)).to_contain_text(keys[title])
    await page.keyboard.press("Escape")
    new = page.get_by_role("button", name="New session")
    await expect(new).to_have_attribute("title", keys["New session"])
    dialog = page.get_by_role("dialog", name="New session")
    await page.keyboard.press("Alt+N")
    await expect(dialog.get_by_label("Prompt")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)

    await page.locator(".xterm-helper-textarea").focus()
    await page.keyboard.press("Alt+Shift+N")
    await expect(dialog.get_by_label("Prompt")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await page.goto(f"{server.url}/#/settings/keys")
    await page.get_by_role("button", name="Keys of New session").click()
    await page.keyboard.press("Control+T")
    await expect(page.get_by_role("status").filter(has_text="is reserved by the browser")).to_be_visible()


async def test_a_terminal_receives_ctrl_keys_and_the_page_does_not(
    device: BrowserContext, server: Server
) -> None:
    terminal = await TerminalPage.new(device, server)
    await terminal.run("echo on-$((20 + 1)); cat")
    await terminal.wait_for_text("on-21")
    await terminal.page.keyboard.press("Control+D")
    await terminal.run("echo back-$((40 + 2))")
    await terminal.wait_for_text("back-42")
    await terminal.page.keyboard.press("Control+Shift+K")
    await expect(terminal.page.get_by_role("dialog")).to_be_visible()


async def test_a_split_survives_a_reload(device: BrowserContext, server: Server) -> None:
    session = await server.new_session()
    for _ in range(2):
        await server.new_terminal(session["id"])
    page = await open_page(device, server, f"#/session/{session['id']}")
    await expect(page.get_by_role("tab")).to_have_count(2)
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Split right").click()
    await expect(page.locator(".xterm-rows")).to_have_count(2)
    bar = page.get_by_role("separator", name="Resize")
    await bar.focus()
    await bar.press("ArrowLeft")
    size = await bar.get_attribute("aria-valuenow")
    await page.reload()
    await expect(page.locator(".xterm-rows")).to_have_count(2)
    await expect(bar).to_have_attribute("aria-valuenow", str(size))


async def open_on_phone(browser: Browser, server: Server) -> Page:
    """Return a page on a phone that shows a terminal of the session "On the go"."""
    session = await server.new_session(title="On the go")
    await server.new_terminal(session["id"])
    profile = await new_profile(browser, 390, 780)
    page = await profile.new_page()
    await page.goto(await login_url(server))
    await page.get_by_role("link", name="On the go").click()
    return page


async def test_a_phone_shows_the_list_of_sessions_or_one_worker(browser: Browser, server: Server) -> None:
    page = await open_on_phone(browser, server)
    await expect(page.locator(".xterm-rows")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Sessions")).to_be_hidden()
    await page.get_by_role("button", name="Session menu").click()
    await expect(page.get_by_role("menuitem", name="Rename")).to_be_visible()
    await expect(page.get_by_role("menuitem", name="Split")).to_have_count(0)
    await page.get_by_role("menuitem", name="Files").click()
    await expect(page.get_by_role("tabpanel", name="Files")).to_be_visible()
    await page.get_by_role("button", name="Close panel").click()
    await page.get_by_role("link", name="All sessions").click()
    await expect(page.get_by_role("link", name="On the go")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.goto(f"{server.url}/#/settings/tokens")
    chosen = page.get_by_role("navigation", name="Settings").get_by_role("link", name="Tokens")
    await expect(chosen).to_be_in_viewport(ratio=1)
    await expect(page.get_by_role("link", name="Sessions", exact=True)).to_be_in_viewport(ratio=1)


async def test_going_back_from_a_panel_on_a_phone_closes_the_panel(browser: Browser, server: Server) -> None:
    page = await open_on_phone(browser, server)
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Files").click()
    await expect(page.get_by_role("tabpanel", name="Files")).to_be_visible()
    await page.go_back()
    await page.get_by_role("link", name="On the go").click()
    await expect(page.get_by_role("button", name="Session menu")).to_be_visible()
    await expect(page.get_by_role("tabpanel", name="Files")).to_have_count(0)


async def test_a_phone_scrolls_to_the_selected_tab_and_its_close_button(
    browser: Browser, server: Server
) -> None:
    session = await server.new_session(title="On the go")
    for _ in range(6):
        last = await server.new_terminal(session["id"])
    profile = await new_profile(browser, 390, 780)
    page = await profile.new_page()
    await page.goto(await login_url(server))
    await page.get_by_role("link", name="On the go").click()
    await page.goto(f"{server.url}/#/session/{session['id']}/{last['id']}")
    tab = page.locator(f"[data-worker='{last['id']}']")
    await expect(tab).to_have_attribute("aria-selected", "true")
    await expect(tab.locator("xpath=..").locator("button")).to_be_in_viewport(ratio=1)


async def test_a_repository_that_another_client_added_appears_when_the_page_gets_the_focus(
    device: BrowserContext, server: Server
) -> None:
    page = await open_page(device, server, "#/new")
    await expect(page.get_by_label("Prompt")).to_be_visible()
    repo = Repo(server.workspace / "atlas")
    await server.call("POST", "/api/repositories", 201, json={"path": str(repo.path)})
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await expect(page.get_by_role("radio", name="atlas")).to_be_visible()


async def test_the_repository_used_last_is_selected_unless_the_user_selects_another_place(
    device: BrowserContext, server: Server
) -> None:
    repositories = {}
    for name in ("atlas", "borneo", "cairo"):  # borneo, used last, is neither the first nor the last here
        repo = Repo(server.workspace / name)
        body = {"path": str(repo.path)}
        repositories[name] = (await server.call("POST", "/api/repositories", 201, json=body))["id"]
    for name in ("cairo", "borneo"):
        await server.call(
            "POST", "/api/sessions", 201, json={"type": "worktree", "repoId": repositories[name]}
        )
    page = await open_page(device, server, "#/new")
    await expect(page.get_by_role("radio", name="borneo")).to_be_checked()
    await page.get_by_role("radio", name="A new directory").click()
    await page.reload()
    await expect(page.get_by_role("radio", name="A new directory")).to_be_checked()


async def test_sessions_are_listed_only_after_their_repositories_are_known(
    device: BrowserContext, server: Server
) -> None:
    repo = Repo(server.workspace / "atlas")
    repository = await server.call("POST", "/api/repositories", 201, json={"path": str(repo.path)})
    body = {"type": "worktree", "repoId": repository["id"], "branch": "fix", "title": "Within"}
    await server.call("POST", "/api/sessions", 201, json=body)
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    page = await device.new_page()
    await page.route("**/api/repositories", hold)
    await page.goto(server.url)
    await expect(connection_light(page)).to_contain_text("Connected")
    sessions = page.get_by_role("navigation", name="Sessions")
    await expect(sessions.get_by_role("link", name="Within")).to_have_count(0)
    released.set()
    await expect(
        sessions.get_by_role("group", name="atlas").get_by_role("link", name="Within")
    ).to_be_visible()


async def test_the_title_and_the_icon_show_that_a_session_waits(
    device: BrowserContext, server: Server
) -> None:
    session = await server.new_session(agentId="demo", title="A question")
    assert '<link rel="icon"' in (await server.http.get("/")).text  # else browsers request favicon.ico
    page = await open_page(device, server)
    body = {"text": "create a file notes.txt"}
    await server.call("POST", f"/api/sessions/{session['id']}/prompt", 202, json=body)
    await expect(page).to_have_title("● 1 · Bullpen", timeout=DEADLINE * 1000)
    await expect(page.locator("link[rel=icon]")).to_have_attribute("href", "/icons/asking.svg")
    await expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()


async def test_the_page_can_be_installed_and_says_that_the_server_cannot_be_reached(
    device: BrowserContext, server: Server
) -> None:
    page = await open_page(device, server)
    await page.evaluate("navigator.serviceWorker.ready")
    manifest = await page.locator("link[rel=manifest]").get_attribute("href")
    assert (await (await page.request.get(f"{server.url}{manifest}")).json())["display"] == "standalone"
    await server.kill()
    await page.goto(server.url)
    await expect(page.get_by_role("heading", name="The Bullpen server cannot be reached")).to_be_visible()
    assert await page.evaluate("window.violations") == []
