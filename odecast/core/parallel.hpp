#pragma once

#include <cstddef>
#include <functional>

namespace odecast {

/// The number of threads to use when the user does not say: one per core.
int default_threads();

/// Runs body(i) for i = 0 … count-1 on at most `threads` threads, the calling one included. Which
/// thread runs which i is not defined, so body must write only to places that belong to i. The
/// first exception stops the rest and is rethrown. `between` runs on the calling thread after each
/// of its own items, and now and then while it waits for the last ones of others, with the number
/// of items begun; it may throw to stop the work. Where the system gives fewer threads, those do
/// the work.
void parallel_for(
    int threads, std::size_t count, const std::function<void(std::size_t)>& body,
    const std::function<void(std::size_t)>& between = [](std::size_t) {});

/// For items that may take long: body calls it now and then, so that work stops soon after it is
/// told to. On the calling thread it runs `between`, of every loop around the item too; on the
/// others it throws once the work has failed. Outside of parallel_for nothing happens.
void pulse();

}  // namespace odecast
