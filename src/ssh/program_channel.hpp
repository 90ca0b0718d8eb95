#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ssh/pump.hpp"

namespace remote::ssh {

// Gives the server's program to a server that has not got it: looks at the first line of its answer, which
// nobody else gets to see. One thread.
class ProgramOffer {
 public:
  // What `data`, the next piece of the channel's stdout, has for others; `needed` is called where the program
  // has to be sent.
  template <typename Needed, typename Pass>
  void take(std::string_view data, const Needed& needed, const Pass& pass) {
    while (!answered_ && !data.empty()) {
      if (const Found found = next_line(data); found == Found::needed) {
        needed();
      } else if (found == Found::other && !line_.empty()) {
        pass(std::exchange(line_, {}));
      }
    }
    if (!data.empty()) {
      pass(data);
    }
  }
  // Whether the program has answered anything.
  bool answered() const { return answered_; }
  // It is on its way: nothing of the request has begun.
  bool installing() const { return sent_ && !answered_; }

 private:
  enum class Found { part, other, needed };
  Found next_line(std::string_view& data);

  std::string line_;     // what of a line is held back, as it may be that line
  bool within_ = false;  // a line whose beginning was passed on
  bool answered_ = false;
  bool sent_ = false;
  std::size_t empty_ = 0;  // lines
};

// A channel with the server's program, which gets this request; it keeps its stdin open. Sent with it is the
// program itself, where the server has not got it. `offer`: for the caller that wants to know how far
// that is.
std::unique_ptr<Flow> open_program(Pump& pump, std::string request, Sink sink,
                                   std::shared_ptr<ProgramOffer> offer = std::make_shared<ProgramOffer>());

}  // namespace remote::ssh
