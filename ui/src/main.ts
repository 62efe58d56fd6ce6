/** Where the page begins. */
import { mount } from 'svelte'
import App from './App.svelte'
import { Page } from './state/page.svelte.ts'
import './style/tokens.css'
import './style/base.css'

const page = new Page()
mount(App, { target: document.getElementById('app') as HTMLElement, props: { page } })
void page.start()
