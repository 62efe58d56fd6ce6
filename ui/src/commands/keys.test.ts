import { expect, test } from 'vitest'
import { belongsToBrowser, isSafeWhileTyping, pressedKeys } from './keys.ts'

const none = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false }

test('the same keys are written the same way on both kinds of machines', () => {
  expect(pressedKeys({ ...none, key: 'k', code: 'KeyK', ctrlKey: true }, false)).toBe('Mod+K')
  expect(pressedKeys({ ...none, key: 'k', code: 'KeyK', metaKey: true }, true)).toBe('Mod+K')
})

test('a modifier does not change the name of its key', () => {
  expect(pressedKeys({ ...none, key: 'D', code: 'KeyD', ctrlKey: true, shiftKey: true }, false)).toBe('Mod+Shift+D')
  expect(pressedKeys({ ...none, key: '∂', code: 'KeyD', altKey: true }, true)).toBe('Alt+D')
  expect(pressedKeys({ ...none, key: '?', code: 'Slash', ctrlKey: true, shiftKey: true }, false)).toBe('Mod+Shift+/')
})

test('another layout is read by what it prints', () => {
  expect(pressedKeys({ ...none, key: '/', code: 'Digit7', ctrlKey: true, shiftKey: true }, false)).toBe('Mod+Shift+7')
  expect(pressedKeys({ ...none, key: 'ö', code: 'Semicolon' }, false)).toBe('Ö')
})

test('a modifier alone is no press', () => {
  expect(pressedKeys({ ...none, key: 'Shift', code: 'ShiftLeft', shiftKey: true }, false)).toBeUndefined()
})

test('letters belong to who types', () => {
  expect(isSafeWhileTyping('G')).toBe(false)
  expect(isSafeWhileTyping('Shift+G')).toBe(false)
  expect(isSafeWhileTyping('Mod+G')).toBe(true)
})

test('a question mark is one wherever the keyboard has it, and Alt with a dead key is a letter', () => {
  expect(pressedKeys({ ...none, key: '?', code: 'Slash', shiftKey: true }, false)).toBe('?')
  expect(pressedKeys({ ...none, key: '?', code: 'Minus', shiftKey: true }, false)).toBe('?')
  expect(pressedKeys({ ...none, key: 'Dead', code: 'KeyN', altKey: true }, true)).toBe('Alt+N')
  expect(pressedKeys({ ...none, key: 'Dead', code: 'Equal' }, true)).toBeUndefined()
})

test('keys that open and close tabs and windows belong to the browser', () => {
  expect(['Mod+N', 'Mod+T', 'Mod+W', 'Mod+Shift+N', 'Mod+Shift+T', 'Mod+Shift+W', 'Mod+Q', 'Mod+Tab'].every(belongsToBrowser)).toBe(true)
  expect(['Mod+K', 'Alt+N', 'Mod+1', 'Mod+Shift+F', '?'].some(belongsToBrowser)).toBe(false)
})
