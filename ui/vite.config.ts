/** Build the page into the Python package, with hashed file names and without inline scripts or styles. */
/// <reference types="vitest/config" />
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'
import { xtermCsp } from './build/xterm-csp.ts'

const server = 'http://127.0.0.1:7420'

export default defineConfig({
  plugins: [svelte({ configFile: false }), xtermCsp()],
  build: {
    outDir: '../src/bullpen/web/ui',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0, // data: addresses would need an exception in the content security policy
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // All code that the first view needs is one file: a dozen requests cost more than the bytes they save.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: 'page', tags: ['$initial'] }] } },
      checks: { pluginTimings: false }, // a slow machine is no reason for a warning
    },
  },
  optimizeDeps: { exclude: ['@xterm/xterm'] }, // otherwise the development server skips the rewrite of xterm
  server: { proxy: { '/api': { target: server }, '/ws': { target: server, ws: true } } },
  test: { include: ['src/**/*.test.ts'], environment: 'node', testTimeout: 30_000 },
})
