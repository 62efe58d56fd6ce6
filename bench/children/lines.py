"""The child that goes on and on: one line every tenth of a second."""

import time

while True:
    print("and then the next thing happened, as things do, one after the other", flush=True)
    time.sleep(0.1)
