/** How the page is built: into the Python package, hashed, with nothing inline. */
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'
import { xtermCsp } from './build/xterm-csp.ts'

const server = 'http://127.0.0.1:7420'

export default defineConfig({
  plugins: [svelte({ configFile: false }), xtermCsp()],
  build: {
    outDir: '../src/bullpen/web/ui',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0, // a data: address in the page would be one more thing the policy has to allow
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // What every page needs is one file, not a dozen: each request costs more than its bytes.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'page', tags: ['$initial'] }] } } },
  },
  optimizeDeps: { exclude: ['@xterm/xterm'] }, // else the rewrite does not see it while developing
  server: { proxy: { '/api': { target: server }, '/ws': { target: server, ws: true } } },
  test: { include: ['src/**/*.test.ts'], environment: 'node', testTimeout: 30_000 },
})
