#pragma once

#include <gtest/gtest.h>

/// First line of a test that computes for minutes under a sanitizer: it runs in the other presets.
/// What it calls is run under the sanitizers by quicker tests of the same room.
#ifdef ODECAST_SANITIZED
#define ODECAST_NOT_UNDER_SANITIZERS() GTEST_SKIP() << "takes minutes under a sanitizer"
#else
#define ODECAST_NOT_UNDER_SANITIZERS() static_cast<void>(0)
#endif
