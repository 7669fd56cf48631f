/* all.c - every test in one program, for bundles: it runs the one whose name it was called by.
 *
 * tests/unit/test_mem is a link to it there. Programs of their own would each carry the library.
 */
#include "testing/test.h"

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/');
    while (name && name > argv[0] && name[-1] != '/') name--; /* with its folder: "unit/test_mem" */
    const char *file = name ? t_file_of(name) : NULL;
    if (file) return t_main(argc, argv, file);
    fprintf(stderr, "%s: there is no test of that name\n", argv[0]);
    return EXIT_FAILURE;
}
