/* dispatch.c - which loop renders a scene on this processor. */
#include "view.h"

br_row_fn *br_render_loop(const br_view *v)
{
    (void)v;
    return br_render_plain;
}

br_latch_fn *br_latch_loop(const br_view *v)
{
    (void)v;
    return br_latch_plain;
}
