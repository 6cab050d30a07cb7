"""A plan in a notebook: the verdict, memory by purpose, the step and its waits,
and what would help. Plain HTML and CSS, light and dark by the page's colours."""
from html import escape

from accel_opt.plans import seconds, size

COLOURS = {"parameters": "#4269d0", "gradients": "#efb118",
           "optimizer": "#ff725c", "activations": "#6cc5b0",
           "logits": "#3ca951", "gathered": "#ff8ab7", "buffers": "#a463f2",
           "allocator": "#97bbf5", "context": "#9c6b4e"}


def parts_of(memory):
    parts = dict(memory.breakdown)
    parts["allocator"] = memory.reserved_bytes - memory.peak_bytes
    parts["context"] = memory.device_bytes - memory.reserved_bytes
    return {name: count for name, count in parts.items() if count > 0}


def bar(parts, whole, budget):
    """One line; the budget is a mark on it."""
    cells = "".join(
        f'<div title="{escape(name)}: {size(count)}" style="width:'
        f'{100 * count / whole:.3f}%;background:{COLOURS.get(name, "#888")}">'
        "</div>" for name, count in parts.items())
    mark = ""
    if budget and budget <= whole:
        mark = (f'<div title="budget: {size(budget)}" style="position:absolute;'
                f'left:{100 * budget / whole:.3f}%;top:-3px;bottom:-3px;'
                'border-left:2px solid currentColor"></div>')
    return ('<div role="img" aria-label="memory by purpose" style="position:'
            'relative;display:flex;height:18px;max-width:640px">'
            f"{cells}{mark}</div>")


def rows(pairs):
    return "<table>" + "".join(
        f"<tr><td style='text-align:left'>{left}</td>"
        f"<td style='text-align:right;white-space:nowrap'>{right}</td></tr>"
        for left, right in pairs) + "</table>"


def how_of(change):
    """Lines of the file, and what says the rest elsewhere."""
    return [f"{y['key']}: {y['value']}" for y in change.get("yaml") or []] + \
        [change["otherwise"]] * bool(change.get("otherwise"))


def plan_html(plan):
    memory, time = plan.memory, plan.time
    parts = parts_of(memory)
    verdict = {True: "Fits", False: "Does not fit", None: ""}[memory.fits]
    whole = max(memory.device_bytes, memory.budget_bytes or 0, 1)
    out = [f"<p><b>{verdict}</b> {escape(plan.verdict())}</p>",
           bar(parts, whole, memory.budget_bytes)]
    swatch = ('<span style="display:inline-block;width:10px;height:10px;'
              'background:{}"></span> {}')
    pairs = [(swatch.format(COLOURS.get(name, "#888"), escape(name)),
              size(count)) for name, count in parts.items()]
    out.append("<details open><summary>Memory of a rank</summary>" +
               rows(pairs + [("together", size(memory.device_bytes))]) +
               "</details>")
    if time:
        pairs = [("forward and backward",
                  seconds(time.compute_s - time.recompute_s -
                          time.optimizer_s)),
                 *([("recomputation", seconds(time.recompute_s))]
                   if time.recompute_s else []),
                 ("optimizer", seconds(time.optimizer_s))]
        pairs += [(f"exposed: {escape(e.cause)}", seconds(e.seconds))
                  for e in time.exposed[:4]]
        out.append(f"<details><summary>A step, {seconds(time.step_s)}"
                   f"</summary>{rows(pairs)}</details>")
    lines = [(f"{escape(r['change'])}: <code>{escape('; '.join(how))}</code>",
              size(r["device_bytes"]))
             for r in plan.recommendations if (how := how_of(r))]
    if lines:
        out.append("<details><summary>What would help</summary>"
                   f"{rows(lines)}</details>")
    return "".join(out)
