#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace remote::servers {

// The answers of a provision script, from its stdout as it comes in pieces of any size: lines that begin with
// "@remote1 ". Other lines are what pip and conda print. What comes is foreign text: lines are cut at 4096
// bytes, and of notes and the like no more than 1000 are kept.
class ProvisionAnswers {
 public:
  // `detail` gets every line that is worth a look: what is being done, or what pip says.
  explicit ProvisionAnswers(std::function<void(const std::string&)> detail) : detail_(std::move(detail)) {}

  void add(std::string_view data);
  bool have(const std::string& what) const;

  std::string failure;  // empty: none
  std::string hint;
  std::vector<std::string> notes;

 private:
  void take_line();

  std::function<void(const std::string&)> detail_;
  std::string line_;
  std::vector<std::string> have_;
};

}  // namespace remote::servers
