#pragma once

/// Marks what the shared library exports; everything else stays hidden in it.
#if defined(_WIN32)
#define STROBE_API
#else
#define STROBE_API __attribute__((visibility("default")))
#endif
