"""Tables that benchmarks print, and keep in a file if one is named."""

import json

RECORD, INTO = {}, []  # the numbers, and the file that they go into, if any


class Table:
    """Prints rows as they come, and keeps them."""

    def __init__(self, title, *head):
        self._title, self._head = title, head
        RECORD[title] = []
        print(f"\n## {title}\n\n| " + " | ".join(head) + " |")
        print("|" + "---|" * len(head), flush=True)

    def row(self, *cells):
        """Print one row."""
        RECORD[self._title].append(dict(zip(self._head, cells, strict=True)))
        for path in INTO:
            with open(path, "w") as stream:
                json.dump(RECORD, stream, indent=1)
        words = (f"{x:.4g}" if isinstance(x, float) else str(x) for x in cells)
        print("| " + " | ".join(words) + " |", flush=True)
