import { expect, test } from 'vitest'
import { deviceName } from './device-name.ts'

test('a user agent becomes the names of the browser and the system', () => {
  const linux = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36'
  const phone = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1'
  expect(deviceName(linux)).toBe('Chrome on Linux')
  expect(deviceName(phone)).toBe('Safari on iPhone')
  expect(deviceName('the laptop of Ada')).toBe('the laptop of Ada')
})
