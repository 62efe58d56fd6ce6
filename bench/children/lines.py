"""Print one line every tenth of a second, without end."""

import time

while True:
    print("and then the next thing happened, as things do, one after the other", flush=True)
    time.sleep(0.1)
