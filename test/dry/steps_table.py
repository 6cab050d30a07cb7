"""What a step of each case launches, copies and waits for: steps.csv."""
import csv
import os

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps.csv")
# Columns of the table: what rank 0 did in a step in which memory has settled.
COUNTED = ("launches", "fills", "copies on the device", "copies to the device",
           "copies to the host", "copies of pageable memory", "ncclAllGather",
           "ncclReduceScatter", "ncclAllReduce", "ncclAlltoAll",
           "event records", "event waits", "host waits",
           "host waits for an event", "cudaMalloc", "cudaHostAlloc",
           "on the default stream")


def read():
    if not os.path.exists(TABLE):
        return {}
    with open(TABLE, encoding="utf-8", newline="") as f:
        return {row.pop("case"): row for row in csv.DictReader(f)}


def counts(report, step):
    """Of rank 0's report."""
    return {key: str(report["steps"][step].get(key, 0)) for key in COUNTED}


def changed(table, title, counted):
    """What is to be said where a step is not as the table has it; or None."""
    if title not in table:
        return f"{TABLE} has no line for it (--update)"
    wrong = [f"{key}: {counted[key]}, {table[title][key]} in steps.csv"
             for key in COUNTED if counted[key] != table[title][key]]
    return ("a step has changed (--update where that is meant):\n"
            + "\n".join(wrong)) if wrong else None


def write(table):
    with open(TABLE, "w", encoding="utf-8", newline="") as f:
        writer = csv.DictWriter(f, ("case", *COUNTED), lineterminator="\n")
        writer.writeheader()
        for title in sorted(table):
            writer.writerow({"case": title, **table[title]})
