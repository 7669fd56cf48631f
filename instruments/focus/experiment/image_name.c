/* image_name.c - see image_name.h. */
#include "image_name.h"

#include <string.h>

static bool is_picture(const char *name)
{
    static const char *const endings[] = {".jpg", ".png", ".tif"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (n > 4 && strcmp(name + n - 4, endings[i]) == 0) return true;
    return false;
}

bool fo_image_name_parse(const char *name, int *well, int64_t *t)
{
    char word[FO_WELL_NAME] = "", digits[20];
    if (!is_picture(name) || strlen(name) < 6 || name[3] != '_') return false;
    memcpy(word, name, 3);
    *well = fo_well_parse(word);
    const char *at = strstr(name, "_t");
    while (at && !(at[2] >= '0' && at[2] <= '9')) at = strstr(at + 1, "_t");
    if (*well < 0 || !at) return false;
    const size_t n = strspn(at + 2, "0123456789");
    if (n >= sizeof digits) return false;
    memcpy(digits, at + 2, n);
    digits[n] = 0;
    /* maps of planes and depths have a word more: A01_t0012_ch00_stitch.depth.tif */
    return strchr(at, '.') == strrchr(at, '.') && fth_int_parse(digits, t);
}

/* "ch00" of A01_t0012_ch00_stitch.jpg, "BF" of A01_BF_t0012.tif. */
void fo_image_name_channel(const char *name, char *channel, size_t bytes)
{
    const char *first = name + 4, *at = strstr(first, "_ch");
    channel[0] = '\0';
    if (at && at[3] >= '0' && at[3] <= '9')
        snprintf(channel, bytes, "ch%.*s", (int)strspn(at + 3, "0123456789"), at + 3);
    else if (strncmp(first - 1, "_t", 2) != 0 || !(first[1] >= '0' && first[1] <= '9'))
        snprintf(channel, bytes, "%.*s", (int)(strstr(first, "_t") - first), first);
}
