"""A profile is computed from values: nothing is read or started."""

from msgspec.structs import replace

from bullpen.domain.sandbox import agent_level, strictest
from bullpen.sandbox.bubblewrap import MAX_SCRATCH_BYTES, bubblewrap_arguments
from bullpen.sandbox.profile import OPEN, GitPaths, MachinePaths, Mount, Profile, RunPaths, plan_profile

HOME = "/home/ada"
WORKSPACE = f"{HOME}/code/project"
MACHINE = MachinePaths(
    homes=(HOME,),
    private=("/home", "/run", "/tmp", f"{HOME}/code"),
    own=(f"{HOME}/.local/share/bullpen", "/srv/bullpen.db"),
    secrets=(f"{HOME}/.ssh", f"{HOME}/.agent/credentials", f"{HOME}/.cargo/credentials"),
    files=frozenset({"/srv/bullpen.db", f"{HOME}/.agent/credentials", f"{HOME}/.cargo/credentials"}),
    toolchains=(f"{HOME}/.cargo", "/usr/bin"),
    caches=(f"{HOME}/.cache", f"{HOME}/.cargo/registry"),
    empty="/empty",
)


def mounts(profile: Profile) -> dict[str, str]:
    return {mount.path: mount.access for mount in profile.mounts}


def workspace_profile(machine: MachinePaths = MACHINE, **more: object) -> Profile:
    return plan_profile("workspace", machine, RunPaths(workspace=WORKSPACE, **more))  # type: ignore[arg-type]


def test_the_strictest_level_that_is_set_applies_and_workspace_without_any() -> None:
    assert agent_level(None, None) == "workspace"
    assert agent_level(None, "open") == "open"
    assert agent_level("open", "sealed", "workspace") == "sealed"
    assert strictest() is None


def test_an_open_profile_restricts_nothing() -> None:
    assert plan_profile("open", MACHINE, RunPaths(workspace=WORKSPACE)) is OPEN
    assert OPEN.mounts == ()
    assert OPEN.has_network


def test_the_home_is_empty_except_for_toolchains_caches_and_the_workspace() -> None:
    assert mounts(workspace_profile()) == {
        "/home": "hidden",
        f"{HOME}/.cache": "write",
        f"{HOME}/.cargo": "read",
        f"{HOME}/.cargo/credentials": "masked",
        f"{HOME}/.cargo/registry": "write",
        WORKSPACE: "write",
        "/run": "hidden",
        "/srv/bullpen.db": "masked",
        "/tmp": "hidden",
    }


def test_a_directory_between_a_writable_and_a_restricted_path_cannot_be_renamed() -> None:
    git = f"{WORKSPACE}/.git"
    profile = workspace_profile(git=GitPaths(writable=(git,), read_only=(f"{git}/modules/a/b/config",)))
    below = {path: access for path, access in mounts(profile).items() if path.startswith(git)}
    assert below == {
        git: "write",
        f"{git}/modules": "write",
        f"{git}/modules/a": "write",
        f"{git}/modules/a/b": "write",
        f"{git}/modules/a/b/config": "read",
    }


def test_no_directory_is_shown_in_the_temporary_directory_of_a_session() -> None:
    machine = replace(MACHINE, private=("/tmp", "/tmp/a/b"), own=(), secrets=())
    shown = mounts(workspace_profile(machine, temporary="/data/tmp"))
    assert {path: access for path, access in shown.items() if path.startswith("/tmp")} == {
        "/tmp": "write",
        "/tmp/a/b": "hidden",
    }


def test_outer_mounts_come_before_inner_ones() -> None:
    paths = [mount.path for mount in workspace_profile().mounts]
    assert all(not outer.startswith(f"{inner}/") for i, inner in enumerate(paths) for outer in paths[:i])


def test_a_credential_is_hidden_in_what_is_brought_back_unless_it_is_state_of_the_agent() -> None:
    caches = (*MACHINE.caches, f"{HOME}/.agent")
    other = workspace_profile(replace(MACHINE, caches=caches))
    assert mounts(other)[f"{HOME}/.agent/credentials"] == "masked"
    its_own = workspace_profile(state=(f"{HOME}/.agent",))
    assert f"{HOME}/.agent/credentials" not in mounts(its_own)
    assert mounts(its_own)[f"{HOME}/.agent"] == "write"


def test_nothing_brings_back_the_data_of_bullpen() -> None:
    own = MACHINE.own[0]
    for access in ("read", "write"):
        granted = (Mount(f"{own}/spool", access), Mount(f"{HOME}/.local", access))
        found = mounts(workspace_profile(granted=granted, state=(f"{own}/state",)))
        assert found[own] == "hidden"
        assert not [path for path in found if path.startswith(f"{own}/")]


def test_a_home_that_is_the_workspace_is_writable_but_its_credentials_are_hidden() -> None:
    found = mounts(plan_profile("workspace", MACHINE, RunPaths(workspace=HOME)))
    assert found[HOME] == "write"
    assert found[f"{HOME}/.ssh"] == "hidden"


def test_a_home_below_a_workspace_root_and_a_workspace_below_tmp_work() -> None:
    machine = MachinePaths(homes=("/srv/all/ada",), private=("/tmp", "/srv/all"))
    found = mounts(plan_profile("workspace", machine, RunPaths(workspace="/srv/all/project")))
    assert found == {"/srv/all": "hidden", "/srv/all/project": "write", "/tmp": "hidden"}
    found = mounts(plan_profile("workspace", machine, RunPaths(workspace="/tmp/a", temporary="/data/tmp")))
    assert (found["/tmp"], found["/tmp/a"]) == ("write", "write")


def test_a_toolchain_in_the_workspace_stays_writable() -> None:
    machine = MachinePaths(toolchains=(f"{WORKSPACE}/.venv",))
    assert f"{WORKSPACE}/.venv" not in mounts(workspace_profile(machine))


def test_git_configuration_is_read_only_below_a_writable_git_directory() -> None:
    git = GitPaths(
        writable=("/repo/.git",),
        read_only=("/repo/.git/config",),
        absent=("/repo/.git/hooks",),
        masked=("/repo/.git/config.worktree",),
    )
    profile = workspace_profile(MachinePaths(empty="/empty"), git=git)
    assert mounts(profile) == {
        WORKSPACE: "write",
        "/repo/.git": "write",
        "/repo/.git/config": "read",
        "/repo/.git/config.worktree": "masked",
        "/repo/.git/hooks": "hidden",
    } | {"/repo/.git/config": "read"}
    assert ("GIT_CONFIG_KEY_0", "gc.auto") in profile.variables


def test_a_run_is_told_what_it_can_write_and_how_more_is_allowed() -> None:
    note = dict(workspace_profile(state=("/state",)).variables)["BULLPEN_SANDBOX_NOTE"]
    assert f"/state, {WORKSPACE}, caches and /tmp" in note
    assert "bullpen sandbox allow" in note


def test_a_sealed_run_has_no_network() -> None:
    profile = plan_profile("sealed", MACHINE, RunPaths(workspace=WORKSPACE), proxy="/data/proxy")
    assert not profile.has_network
    assert "--unshare-net" in bubblewrap_arguments(profile)
    assert "--unshare-net" not in bubblewrap_arguments(workspace_profile())


def test_the_options_of_bubblewrap_follow_the_mounts() -> None:
    profile = Profile(
        level="workspace",
        mounts=(
            Mount("/home", "hidden"),
            Mount("/home/a", "read"),
            Mount("/home/b", "write"),
            Mount("/home/c", "masked", "/empty"),
            Mount("/tmp", "write", "/data/tmp"),
        ),
    )
    options = bubblewrap_arguments(profile)
    start = options.index("ALL") + 1
    assert options[start:] == [
        *("--perms", "0755", "--size", str(MAX_SCRATCH_BYTES), "--tmpfs", "/home"),
        *("--ro-bind", "/home/a", "/home/a"),
        *("--bind", "/home/b", "/home/b"),
        *("--ro-bind", "/empty", "/home/c"),
        *("--bind", "/data/tmp", "/tmp"),
    ]


def test_no_run_writes_what_shells_of_the_user_read_in_the_cache() -> None:
    machine = replace(MACHINE, caches=(f"{HOME}/.cache/pip",), private_cache="/data/cache")
    found = {mount.path: mount for mount in workspace_profile(machine).mounts}
    assert found[f"{HOME}/.cache"] == Mount(f"{HOME}/.cache", "write", "/data/cache")
    assert found[f"{HOME}/.cache/pip"] == Mount(f"{HOME}/.cache/pip", "write")
    chosen = workspace_profile(replace(machine, caches=(f"{HOME}/.cache",)))
    assert Mount(f"{HOME}/.cache", "write") in chosen.mounts
    in_home = plan_profile("workspace", machine, RunPaths(workspace=HOME))
    assert "/data/cache" not in [mount.source for mount in in_home.mounts]
