#pragma once

namespace odecast {

/// Asks whatever works or waits to stop, on behalf of a signal. For a signal handler:
/// async-signal-safe. Handlers are to be installed without SA_RESTART, so that a system call that
/// blocks comes back and looks.
void request_stop(int signal) noexcept;

/// The signal of request_stop(), or 0.
int stop_requested() noexcept;

/// Throws Interrupted once a stop was requested.
void throw_if_stopped();

}  // namespace odecast
