#include "apps/odecast/ending.hpp"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "apps/odecast/commands.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/stop.hpp"

namespace odecast::cli {
namespace {

void write_error(const char* text) noexcept {
  // A message that cannot be written, or not now, is lost; the exit code is not.
  pollfd error{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&error, 1, 0) != 1 || (error.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text, std::strlen(text));
}

[[noreturn]] void end_at_once(const char* text, int code) noexcept {
  remove_temporaries();
  write_error("odecast: ");
  write_error(text);
  write_error("\n");
  ::_exit(code);
}

[[noreturn]] void end_interrupted() noexcept {
  end_at_once(interruption_text(), 128 + stop_requested());
}

/// Work looks at the request when it comes to it; what does not in 0.5 s is ended.
extern "C" void on_signal(int signal) {
  const int saved = errno;
  if (stop_requested() != 0) end_interrupted();  // asked twice: at once
  request_stop(signal);
  const itimerval soon{{0, 0}, {0, 500'000}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  errno = saved;
}

extern "C" void on_alarm(int) { end_interrupted(); }

/// Not by an exception: what it unwinds may want memory too, where no exception may leave.
void on_no_memory() { end_at_once(kOutOfMemory, kFileFailure); }

[[noreturn]] void on_terminate() {
  try {
    if (const auto now = std::current_exception()) std::rethrow_exception(now);
  } catch (const std::bad_alloc&) {  // of an allocator other than operator new
    on_no_memory();
  } catch (...) {
  }
  std::abort();
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);  // no SA_RESTART: what blocks comes back
}

/// What the C functions give, or the end: Eigen throws where memory fails, from within objects that
/// are half changed and cannot be destroyed then. The linker lets the calls of this program, those
/// of the headers that it is made of, come here.
void* checked(void* memory, std::size_t size) {
  if (!memory && size > 0) on_no_memory();
  return memory;
}

/// Before the constructors of other globals: they allocate.
struct MemoryHandlers {
  MemoryHandlers() {
    std::set_new_handler(on_no_memory);
    std::set_terminate(on_terminate);
  }
};
[[gnu::init_priority(101)]] const MemoryHandlers memory_handlers;

}  // namespace

extern "C" {
void* __real_malloc(std::size_t size);
void* __real_realloc(void* old, std::size_t size);
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
void* __wrap_malloc(std::size_t size) { return checked(__real_malloc(size), size); }
void* __wrap_realloc(void* old, std::size_t size) {
  return checked(__real_realloc(old, size), size);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return checked(__real_aligned_alloc(alignment, size), size);
}
}

void install_endings() {
  handle(SIGALRM, on_alarm);
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) handle(SIGHUP, on_signal);  // ignored under nohup
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
}

const char* interruption_text() {
  return *kept_work() != '\0'   ? kept_work()
         : files_written() == 0 ? "interrupted; nothing was written"
                                : "interrupted; files that were written before are whole";
}

}  // namespace odecast::cli
