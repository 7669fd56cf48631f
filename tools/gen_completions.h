/* gen_completions.h - completions of shells, for gen_cli_docs.c. */
#ifndef FATHOM_GEN_COMPLETIONS_H
#define FATHOM_GEN_COMPLETIONS_H

#include <stdio.h>

void gen_bash(FILE *f);
void gen_zsh(FILE *f);
void gen_fish(FILE *f);

#endif
