"""Recompute the memory of plans from their JSON, without the planner's rules.

Loops are unrolled into three turns each and every use of a buffer is written down. A buffer holds
new contents in every turn of its home loop, so each such turn is an instance of its own; an instance
needs its bytes from its first use to its last. What the planner calls a lifetime follows from that.

usage: plan_simulator.py PLAN.json...
Says one line per plan; exits 1 when a plan and the simulation disagree.
"""
import json
import sys

TURNS = 3
ALIGN = 64


class Wrong(Exception):
    pass


def need(ok, text, *args):
    if not ok:
        raise Wrong(text % args)


class Simulation:
    def __init__(self, plan):
        self.plan = plan
        self.loops = plan["loops"]
        self.buffers = plan["buffers"]
        self.items = plan["items"]
        self.time = 0
        self.uses = {}  # (buffer, turns of home and outer loops) -> [first, last]
        self.spans = {}  # (loop, turns outside it) -> [begin, end]
        self.readers = set()

    # -- unrolling ------------------------------------------------------------------------------

    def path(self, loop):
        """The loops around a place, outermost first."""
        out = []
        while loop >= 0:
            out.append(loop)
            loop = self.loops[loop]["parent"]
        return out[::-1]

    def storage(self, buffer):
        while self.buffers[buffer]["kind"] == "view":
            buffer = self.buffers[buffer]["base"]
        return buffer

    def use(self, buffer, turns):
        buffer = self.storage(buffer)
        home = self.path(self.buffers[buffer]["home"])
        for loop in home:
            need(loop in turns, "buffer %d is used outside its loop", buffer)
        key = (buffer, tuple(turns[loop] for loop in home))
        first, _ = self.uses.get(key, (self.time, self.time))
        self.uses[key] = (first, self.time)

    def run(self, first, last, turns):
        i = first
        while i < last:
            item = self.items[i]
            self.time += 1
            if item["kind"] == "begin":
                loop = item["loop"]
                need(self.loops[loop]["begin"] == i, "loop %d does not begin at item %d", loop, i)
                begin = self.time
                for turn in range(TURNS):
                    self.run(i + 1, self.loops[loop]["end"], {**turns, loop: turn})
                i = self.loops[loop]["end"]
                need(self.items[i]["kind"] == "end", "item %d does not end a loop", i)
                self.time += 1
                outside = tuple(turns[l] for l in self.path(self.loops[loop]["parent"]))
                self.spans[loop, outside] = (begin, self.time)
            else:
                for buffer in item["in"] + item["out"] + item["state"]:
                    self.use(buffer, turns)
                if item["scratch"] >= 0:
                    self.use(item["scratch"], turns)
            i += 1

    # -- intervals ------------------------------------------------------------------------------

    def root(self, buffer):
        while self.buffers[buffer]["in_place"] >= 0:
            buffer = self.buffers[buffer]["in_place"]
        return buffer

    def intervals(self):
        """(first, last, offset, bytes) of every block of the arena in every instance."""
        blocks = {}
        for (buffer, turns), (first, last) in self.uses.items():
            b = self.buffers[buffer]
            if b["kind"] != "arena" or b["bytes"] == 0:
                continue
            if b["copies"] == 2:  # read ahead or written behind: for as long as its loop turns
                turns = turns[:-1]
                first, last = self.spans[b["home"], turns]
                blocks[buffer, turns] = [(first, last, buffer)]
                continue
            blocks.setdefault((self.root(buffer), turns), []).append((first, last, buffer))
        out = []
        for (root, _), parts in blocks.items():
            parts.sort()
            for a, b in zip(parts, parts[1:]):
                need(a[1] == b[0], "buffer %d takes over buffer %d which is still used", b[2], a[2])
                need(self.buffers[b[2]]["bytes"] <= self.buffers[root]["bytes"], "buffer %d is larger than %d", b[2], root)
                need(self.buffers[b[2]]["offset"] == self.buffers[root]["offset"], "buffer %d lies elsewhere", b[2])
            r = self.buffers[root]
            out.append((parts[0][0], max(p[1] for p in parts), r["offset"], r["bytes"] * r["copies"], root))
        return out

    def check_shapes(self):
        for i, b in enumerate(self.buffers):
            need(b["offset"] % ALIGN == 0, "buffer %d is not aligned", i)
            if b["kind"] != "arena" or b["element"] == 0 or b["bytes"] == 0:
                continue
            bytes_ = b["element"]
            for extent in b["extent"]:
                bytes_ *= extent
            bytes_ = -(-bytes_ // ALIGN) * ALIGN
            need(bytes_ == b["bytes"], "buffer %d (%s) has %d bytes, its shape %d", i, b["label"], b["bytes"], bytes_)

    def check(self):
        self.check_shapes()
        self.run(0, len(self.items), {})
        blocks = self.intervals()
        events = []
        for k, (first, last, _, _, _) in enumerate(blocks):
            events.append((first, 0, k))
            events.append((last + 1, -1, k))  # ends before others begin
        lower = live = 0
        alive = set()
        for _, kind, k in sorted(events):
            _, _, offset, size, buffer = blocks[k]
            if kind < 0:
                alive.discard(k)
                live -= size
                continue
            for other in alive:
                _, _, at, n, who = blocks[other]
                need(offset + size <= at or at + n <= offset, "buffers %d and %d overlap while both live", buffer, who)
            alive.add(k)
            live += size
            lower = max(lower, live)
        peak = max((offset + size for _, _, offset, size, _ in blocks), default=0)
        if peak >= 100 << 20:  # no longer from the reserved range: whole pages
            peak = -(-peak // 4096) * 4096
        need(peak == self.plan["peak"], "peak %d, simulated %d", self.plan["peak"], peak)
        need(lower == self.plan["lower"], "lower bound %d, simulated %d", self.plan["lower"], lower)
        need(peak + self.plan["foreign"] <= self.plan["budget"], "the plan is larger than its budget")
        return peak, lower


def main(paths):
    bad = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        try:
            peak, lower = Simulation(plan).check()
            print(f"{path.rsplit('/', 1)[-1]}: {len(plan['items'])} items, {len(plan['loops'])} loops, "
                  f"peak {peak} and lower bound {lower} as planned")
        except Wrong as wrong:
            print(f"{path}: {wrong}", file=sys.stderr)
            bad += 1
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
