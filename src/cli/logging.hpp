#pragma once

#include "ui/terminal.hpp"

namespace remote::cli {

// The library's log on stderr, with the time of each line, as long as the object lives.
class Logging {
 public:
  // How often -v was given. 0: no log.
  Logging(ui::Terminal& terminal, int verbosity);
  ~Logging();
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
};

}  // namespace remote::cli
