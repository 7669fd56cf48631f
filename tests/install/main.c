/* main.c - a user's first program: does the installed library answer? */
#include <fathom/fathom.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    printf("fathom %s\n", fth_version());
    return strcmp(fth_version(), FTH_VERSION_TEXT) != 0;
}
