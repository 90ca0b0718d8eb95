#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace remote::servers {

// The answers of a script, "@remote1 WORD VALUE" lines, from its stdout as it comes; docs/protocol.md lists
// them. Other lines (what pip, conda and rsync print, also those that end with '\r') go to `other`. It is
// foreign text, in pieces of any size: a line is cut at 16384 bytes, and a million answers are kept at most.
class Answers {
 public:
  explicit Answers(std::function<void(std::string_view)> other) : other_(std::move(other)) {}

  void add(std::string_view data);
  // Whether any has come.
  bool begun() const { return !lines_.empty(); }
  // The values of the lines with this word, in order.
  std::vector<std::string> all(std::string_view word) const;
  // That of the last; "" when there is none.
  std::string last(std::string_view word) const;
  bool has(std::string_view word, std::string_view value) const;

 private:
  void take_line();

  std::function<void(std::string_view)> other_;
  std::string line_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace remote::servers
