#include "odecast/core/error.hpp"

namespace odecast {

Error::Error(ErrorKind kind, const Complaint& c)
    : std::runtime_error(c.where + ": found " + c.found + ", expected " + c.expected + ". " +
                         c.remedy),
      kind_(kind) {}

void throw_usage(const Complaint& complaint) { throw Error(ErrorKind::usage, complaint); }
void throw_data(const Complaint& complaint) { throw Error(ErrorKind::data, complaint); }
void throw_file(const Complaint& complaint) { throw Error(ErrorKind::file, complaint); }

}  // namespace odecast
