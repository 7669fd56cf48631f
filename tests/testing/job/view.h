/* testing/job/view.h - views made by hand. */
#ifndef FATHOM_TESTING_VIEW_H
#define FATHOM_TESTING_VIEW_H

#include "testing/test.h"

#include "job/ledger/view.h"

/* A new task; valid until the next one. Its texts are copied into the view. */
static inline fth_task *t_view_task(fth_view *view, const char *job, const char *stage,
                                    fth_state state)
{
    fth_task *t = NULL;
    OK(fth__view_add_task(view, &t, NULL));
    t->job = fth__view_text(view, job, NULL);
    t->stage = fth__view_text(view, stage, NULL);
    t->state = state;
    return t;
}

#endif
