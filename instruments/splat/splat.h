/* splat.h - what the rooms offer to instrument.c. */
#ifndef SPLAT_H
#define SPLAT_H

#include "convert/convert.h"
#include "data/data.h"
#include "densify/densify.h"
#include "eval/eval.h"
#include "figures/figures.h"
#include "info/info.h"
#include "render/render.h"
#include "toy/toy.h"
#include "train/train.h"

#endif
