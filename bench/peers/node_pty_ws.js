// Peer: node-pty behind ws, one shell per socket, bytes as binary frames. Arguments: port, "plain" or "joined".
"use strict";

const { createRequire } = require("node:module");
const requirePeer = createRequire(`${process.cwd()}/`); // the working directory is the folder of the installed peers
const pty = requirePeer("node-pty");
const { WebSocketServer } = requirePeer("ws");

const [port, mode] = process.argv.slice(2);
const HIGH_WATER = 1 << 20; // bytes waiting on the socket before the pty is no longer read
const JOIN_MS = 3;
const JOIN_BYTES = 256 * 1024; // both as in the demo server of xterm.js

function plain(socket) {
  return { push: (data) => socket.send(data), typed() {} };
}

// Output is held for up to JOIN_MS and joined, except the first piece after a key, which is its echo.
function joined(socket) {
  let pieces = [];
  let size = 0;
  let timer = null;
  let justTyped = false;

  function flush() {
    clearTimeout(timer);
    timer = null;
    socket.send(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, size));
    pieces = [];
    size = 0;
  }

  return {
    push(data) {
      pieces.push(data);
      size += data.length;
      if (justTyped || size >= JOIN_BYTES) flush();
      else timer ??= setTimeout(flush, JOIN_MS);
      justTyped = false;
    },
    typed() {
      justTyped = true;
    },
  };
}

new WebSocketServer({ host: "127.0.0.1", port: Number(port) }).on("connection", (socket) => {
  const shell = pty.spawn("/bin/sh", [], { cols: 80, rows: 24, encoding: null });
  const output = (mode === "joined" ? joined : plain)(socket);
  let open = true;

  shell.onData((data) => {
    if (!open) return;
    output.push(data);
    if (socket.bufferedAmount > HIGH_WATER) {
      shell.pause();
      resumeWhenDrained();
    }
  });

  function resumeWhenDrained() {
    if (!open || socket.bufferedAmount <= HIGH_WATER / 2) shell.resume();
    else setTimeout(resumeWhenDrained, 1);
  }

  socket.on("message", (data) => {
    output.typed();
    shell.write(data);
  });
  socket.on("close", () => {
    open = false;
    shell.kill();
  });
  shell.onExit(() => socket.close());
});
