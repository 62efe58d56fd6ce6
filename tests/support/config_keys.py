"""Classify every key of `git help --config` by whether it can make git run a program.

The lists cover git 2.39 to 2.47. A key that is in none of them is treated as one that can run a program.
"""

import subprocess
from collections.abc import Iterator

PROGRAM = "{program}"  # stands for a script of the test, one for each key
HOOKS = "{hooks}"  # stands for a directory with that script as every hook

# Keys that name a program, each with settings that make git run it. A key may need more than one.
PROGRAMS: dict[str, dict[str, str]] = {
    "alias.*": {"alias.canary": f"!{PROGRAM}"},
    "browser.<tool>.cmd": {"browser.canary.cmd": PROGRAM},
    "browser.<tool>.path": {"browser.firefox.path": PROGRAM},
    "core.alternateRefsCommand": {"core.alternateRefsCommand": PROGRAM},
    "core.askPass": {"core.askPass": PROGRAM},
    "core.editor": {"core.editor": PROGRAM},
    "core.fsmonitor": {"core.fsmonitor": PROGRAM},
    "core.gitProxy": {"core.gitProxy": PROGRAM},
    "core.hooksPath": {"core.hooksPath": HOOKS},
    "core.pager": {"core.pager": PROGRAM},
    "core.sshCommand": {"core.sshCommand": PROGRAM},
    "credential.<url>.*": {"credential.https://example.invalid.helper": f"!{PROGRAM}"},
    "credential.helper": {"credential.helper": f"!{PROGRAM}"},
    "diff.<driver>.command": {"diff.command.command": PROGRAM},
    "diff.<driver>.textconv": {"diff.textconv.textconv": PROGRAM},
    "diff.external": {"diff.external": PROGRAM},
    "difftool.<tool>.cmd": {"difftool.canary.cmd": PROGRAM},
    "difftool.<tool>.path": {"difftool.meld.path": PROGRAM},
    "filter.<driver>.clean": {"filter.plain.clean": PROGRAM},
    "filter.<driver>.process": {"filter.process.process": PROGRAM},
    "filter.<driver>.smudge": {"filter.plain.smudge": PROGRAM},
    "gc.recentObjectsHook": {"gc.recentObjectsHook": PROGRAM},
    "gpg.<format>.program": {"gpg.ssh.program": PROGRAM, "gpg.x509.program": PROGRAM},
    "gpg.program": {"gpg.program": PROGRAM},
    "gpg.ssh.defaultKeyCommand": {"gpg.ssh.defaultKeyCommand": PROGRAM},
    "guitool.<name>.cmd": {"guitool.canary.cmd": PROGRAM},
    "hook.<name>.command": {"hook.canary.command": PROGRAM, "hook.canary.event": "post-checkout"},
    "imap.tunnel": {"imap.tunnel": PROGRAM},
    "init.templateDir": {"init.templateDir": HOOKS},
    "instaweb.browser": {"instaweb.browser": PROGRAM},
    "instaweb.httpd": {"instaweb.httpd": PROGRAM},
    "instaweb.modulePath": {"instaweb.modulePath": HOOKS},
    "interactive.diffFilter": {"interactive.diffFilter": PROGRAM},
    "man.<tool>.cmd": {"man.canary.cmd": PROGRAM},
    "man.<tool>.path": {"man.woman.path": PROGRAM},
    "merge.<driver>.driver": {"merge.canary.driver": PROGRAM},
    "mergetool.<tool>.cmd": {"mergetool.canary.cmd": PROGRAM},
    "mergetool.<tool>.path": {"mergetool.meld.path": PROGRAM},
    "pager.<cmd>": {"pager.log": PROGRAM, "pager.diff": PROGRAM},
    "remote.<name>.pushurl": {"remote.origin.pushurl": f"ext::{PROGRAM}"},
    "remote.<name>.receivepack": {"remote.local.receivepack": PROGRAM},
    "remote.<name>.uploadpack": {"remote.local.uploadpack": PROGRAM},
    "remote.<name>.url": {"remote.origin.url": f"ext::{PROGRAM}"},
    "remote.<name>.vcs": {"remote.foreign.vcs": "ext", "remote.foreign.url": PROGRAM},
    "sendemail.<identity>.*": {"sendemail.canary.sendmailCmd": PROGRAM},
    "sendemail.ccCmd": {"sendemail.ccCmd": PROGRAM},
    "sendemail.headerCmd": {"sendemail.headerCmd": PROGRAM},
    "sendemail.sendmailCmd": {"sendemail.sendmailCmd": PROGRAM},
    "sendemail.smtpServer": {"sendemail.smtpServer": PROGRAM},
    "sendemail.toCmd": {"sendemail.toCmd": PROGRAM},
    "sequence.editor": {"sequence.editor": PROGRAM},
    "submodule.<name>.update": {"submodule.sub.update": f"!{PROGRAM}"},
    "tar.<format>.command": {"tar.canary.command": PROGRAM},
    "trailer.<token>.cmd": {"trailer.canary.cmd": PROGRAM},
    "trailer.<token>.command": {"trailer.canary.command": PROGRAM},
    "uploadpack.packObjectsHook": {"uploadpack.packObjectsHook": PROGRAM},
    "url.<base>.insteadOf": {f"url.ext::{PROGRAM} .insteadOf": "canary:"},
    "url.<base>.pushInsteadOf": {f"url.ext::{PROGRAM} .pushInsteadOf": "canary-push:"},
}

# Keys that name no program, but select, allow or trigger one.
SWITCHES: dict[str, dict[str, str]] = {
    "commit.gpgSign": {"commit.gpgSign": "true"},
    "diff.guitool": {"diff.guitool": "canary"},
    "diff.ignoreSubmodules": {"diff.ignoreSubmodules": "none"},
    "diff.submodule": {"diff.submodule": "diff"},
    "diff.tool": {"diff.tool": "canary"},
    "extensions.partialClone": {"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin"},
    "filter.<driver>.required": {"filter.plain.required": "true", "filter.process.required": "true"},
    "help.browser": {"help.browser": "canary"},
    "log.showSignature": {"log.showSignature": "true"},
    "man.viewer": {"man.viewer": "canary"},
    "merge.guitool": {"merge.guitool": "canary"},
    "merge.tool": {"merge.tool": "canary"},
    "merge.verifySignatures": {"merge.verifySignatures": "true"},
    "protocol.<name>.allow": {"protocol.ext.allow": "always", "protocol.file.allow": "always"},
    "protocol.allow": {"protocol.allow": "always"},
    "push.gpgSign": {"push.gpgSign": "if-asked"},
    "remote.<name>.promisor": {"remote.origin.promisor": "true"},
    "status.submoduleSummary": {"status.submoduleSummary": "true"},
    "submodule.<name>.ignore": {"submodule.sub.ignore": "none"},
    "submodule.recurse": {"submodule.recurse": "true"},
    "tag.gpgSign": {"tag.gpgSign": "true"},
    "web.browser": {"web.browser": "canary"},
}

# Keys that make git read another file. The test plants all other keys by them.
ROUTES = frozenset({"include.path", "includeIf.<condition>.path", "extensions.worktreeConfig"})

# Sections in which no key can make git run a program.
HARMLESS_SECTIONS = frozenset(
    """
    add advice am apply attr author bitmapPseudoMerge blame branch bundle checkout clean clone color
    column commitGraph committer completion credentialCache credentialStore fastimport feature fetch
    format fsck fsmonitor gitcvs gitweb grep gui http i18n index lsrefs mailinfo mailmap maintenance
    notes pack pretty promisor pull rebase receive reftable remotes repack rerere revert safe
    showBranch sparse splitIndex ssh stash trace2 transfer uploadarchive uploadpackfilter user
    versionsort worktree
    """.lower().split()
)

# Keys of the other sections that cannot make git run a program.
HARMLESS_KEYS: dict[str, str] = {
    "commit": """
        cleanup status template verbose
    """,
    "core": """
        abbrev alternateRefsPrefixes attributesFile autocrlf bare bigFileThreshold
        checkRoundtripEncoding checkStat commentChar commentString commitGraph compression
        createObject deltaBaseCacheLimit eol excludesFile fileMode filesRefLockTimeout
        fsmonitorHookVersion fsync fsyncMethod fsyncObjectFiles hideDotFiles ignoreCase ignoreStat
        logAllRefUpdates looseCompression maxTreeDepth multiPackIndex notesRef packedGitLimit
        packedGitWindowSize packedRefsTimeout precomposeUnicode preferSymlinkRefs preloadIndex
        protectHFS protectNTFS quotePath repositoryFormatVersion restrictinheritedhandles safecrlf
        sharedRepository sparseCheckout sparseCheckoutCone splitIndex symlinks trustctime
        unsetenvvars untrackedCache useReplaceRefs warnAmbiguousRefs whitespace worktree
    """,
    "credential": """
        interactive protectProtocol sanitizePrompt useHttpPath username
    """,
    "diff": """
        <driver>.binary <driver>.cachetextconv <driver>.trustExitCode <driver>.wordRegex
        <driver>.xfuncname algorithm autoRefreshIndex colorMoved colorMovedWS context dirstat
        dstPrefix indentHeuristic interHunkContext mnemonicPrefix noprefix orderFile relative
        renameLimit renames srcPrefix statGraphWidth statNameWidth suppressBlankEmpty trustExitCode
        wordRegex wsErrorHighlight
    """,
    "difftool": """
        guiDefault prompt trustExitCode
    """,
    "extensions": """
        compatObjectFormat objectFormat refStorage
    """,
    "gc": """
        <pattern>.reflogExpire <pattern>.reflogExpireUnreachable aggressiveDepth aggressiveWindow
        auto autoDetach autoPackLimit bigPackThreshold cruftPacks logExpiry maxCruftSize packRefs
        pruneExpire reflogExpire reflogExpireUnreachable repackFilter repackFilterTo rerereResolved
        rerereUnresolved worktreePruneExpire writeCommitGraph
    """,
    "gpg": """
        format minTrustLevel ssh.allowedSignersFile ssh.revocationFile
    """,
    "guitool": """
        <name>.argPrompt <name>.confirm <name>.needsFile <name>.noConsole <name>.noRescan
        <name>.prompt <name>.revPrompt <name>.revUnmerged <name>.title
    """,
    "help": """
        autoCorrect format htmlPath
    """,
    "imap": """
        authMethod folder host pass port preformattedHTML sslverify user
    """,
    "init": """
        defaultBranch
    """,
    "instaweb": """
        local port
    """,
    "interactive": """
        singleKey
    """,
    "log": """
        abbrevCommit date decorate diffMerges excludeDecoration follow graphColors
        initialDecorationSet mailmap showRoot
    """,
    "merge": """
        <driver>.name <driver>.recursive autoStash branchdesc conflictStyle defaultToUpstream
        directoryRenames ff log renameLimit renames renormalize stat suppressDest verbosity
    """,
    "mergetool": """
        <tool>.hideResolved <tool>.trustExitCode <vimdiff_variant>.layout guiDefault hideResolved
        keepBackup keepTemporaries meld.hasOutput meld.useAutoMerge prompt vimdiff.layout
        writeToTemp
    """,
    "protocol": """
        version
    """,
    "push": """
        autoSetupRemote default followTags negotiate pushOption recurseSubmodules useBitmaps
        useForceIfIncludes
    """,
    "remote": """
        <name>.fetch <name>.mirror <name>.partialclonefilter <name>.proxy <name>.proxyAuthMethod
        <name>.prune <name>.pruneTags <name>.push <name>.skipDefaultUpdate <name>.skipFetchAll
        <name>.tagOpt pushDefault
    """,
    "sendemail": """
        aliasesFile aliasFileType annotate bcc cc chainReplyTo confirm envelopeSender
        forbidSendmailVariables from identity mailmap mailmap.blob mailmap.file multiEdit
        signedoffbycc smtpBatchSize smtpDomain smtpEncryption smtpPass smtpReloginDelay
        smtpServerOption smtpServerPort smtpsslcertpath smtpUser suppresscc suppressFrom thread to
        transferEncoding validate xmailer
    """,
    "status": """
        aheadBehind branch displayCommentPrefix relativePaths renameLimit renames short showStash
        showUntrackedFiles
    """,
    "submodule": """
        <name>.active <name>.branch <name>.fetchRecurseSubmodules <name>.url active
        alternateErrorStrategy alternateLocation fetchJobs propagateBranches
    """,
    "tag": """
        forceSignAnnotated sort
    """,
    "tar": """
        umask
    """,
    "uploadpack": """
        allowAnySHA1InWant allowFilter allowReachableSHA1InWant allowRefInWant allowTipSHA1InWant
        hideRefs keepAlive
    """,
}

_HARMLESS = {
    f"{section}.{name}" for section, names in HARMLESS_KEYS.items() for name in names.lower().split()
}
_KNOWN = {key.lower() for key in (*PROGRAMS, *SWITCHES, *ROUTES)}


def printed_keys() -> list[str]:
    """Return the configuration keys that the installed git prints."""
    done = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True)
    lines = (line.strip() for line in done.stdout.splitlines())
    return [line for line in lines if line and not line.startswith("'git")]


def is_classified(key: str) -> bool:
    key = key.lower().replace(" ", "_")
    return key in _KNOWN or key in _HARMLESS or key.partition(".")[0] in HARMLESS_SECTIONS


def unknown_keys() -> list[str]:
    return [key for key in printed_keys() if not is_classified(key)]


def planted_settings() -> Iterator[tuple[str, str, str]]:
    """Yield each dangerous setting: the key in `git help --config`, the key to set, and its value."""
    for key, settings in {**SWITCHES, **PROGRAMS}.items():
        for name, value in settings.items():
            yield key, name, value
    for key in unknown_keys():
        yield key, key.replace("*", "canary").replace("<", "").replace(">", "").replace(" ", ""), PROGRAM
