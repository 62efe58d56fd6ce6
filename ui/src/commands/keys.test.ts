import { expect, test } from 'vitest'
import { belongsToBrowser, isSafeWhileTyping, pressedKeys } from './keys.ts'

const none = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false }

test('a shortcut has the same name on a Mac and elsewhere', () => {
  expect(pressedKeys({ ...none, key: 'k', code: 'KeyK', ctrlKey: true }, false)).toBe('Mod+K')
  expect(pressedKeys({ ...none, key: 'k', code: 'KeyK', metaKey: true }, true)).toBe('Mod+K')
})

test('a modifier does not change the name of its key', () => {
  expect(pressedKeys({ ...none, key: 'D', code: 'KeyD', ctrlKey: true, shiftKey: true }, false)).toBe('Mod+Shift+D')
  expect(pressedKeys({ ...none, key: '∂', code: 'KeyD', altKey: true }, true)).toBe('Alt+D')
  expect(pressedKeys({ ...none, key: '?', code: 'Slash', ctrlKey: true, shiftKey: true }, false)).toBe('Mod+Shift+/')
})

test('keys of other layouts are named by the character they print', () => {
  expect(pressedKeys({ ...none, key: '/', code: 'Digit7', ctrlKey: true, shiftKey: true }, false)).toBe('Mod+Shift+7')
  expect(pressedKeys({ ...none, key: 'ö', code: 'Semicolon' }, false)).toBe('Ö')
})

test('a modifier alone is no shortcut', () => {
  expect(pressedKeys({ ...none, key: 'Shift', code: 'ShiftLeft', shiftKey: true }, false)).toBeUndefined()
})

test('letters are not shortcuts while the user types', () => {
  expect(isSafeWhileTyping('G')).toBe(false)
  expect(isSafeWhileTyping('Shift+G')).toBe(false)
  expect(isSafeWhileTyping('Mod+G')).toBe(true)
})

test('a question mark is recognised on every layout, and Alt with a dead key is a letter', () => {
  expect(pressedKeys({ ...none, key: '?', code: 'Slash', shiftKey: true }, false)).toBe('?')
  expect(pressedKeys({ ...none, key: '?', code: 'Minus', shiftKey: true }, false)).toBe('?')
  expect(pressedKeys({ ...none, key: 'Dead', code: 'KeyN', altKey: true }, true)).toBe('Alt+N')
  expect(pressedKeys({ ...none, key: 'Dead', code: 'Equal' }, true)).toBeUndefined()
})

test('shortcuts for tabs and windows belong to the browser', () => {
  expect(['Mod+N', 'Mod+T', 'Mod+W', 'Mod+Shift+N', 'Mod+Shift+T', 'Mod+Shift+W', 'Mod+Q', 'Mod+Tab'].every(belongsToBrowser)).toBe(true)
  expect(['Mod+K', 'Alt+N', 'Mod+1', 'Mod+Shift+F', '?'].some(belongsToBrowser)).toBe(false)
})
