"""Plans of the fusion of GPU kernels: the command `stitchwork`, wrapped.

    import stitchwork
    plan = stitchwork.plan(fn, x, y, planner="astitch", device="a100")
    plan.kernels, plan.explain("power.1"), plan.diff(other), plan.run(check=True)

Numbers are the command's, and as in its documents: times in microseconds, modelled where `method` says nothing else.
"""

from .command import Error, Document, version
from .planned import Plan, plan

__all__ = ["Document", "Error", "Plan", "plan", "version"]
