#pragma once

#include <memory>
#include <string>

// Serves one page to this machine's user, for `remote report --watch`.

namespace remote::cli {

// Listens on 127.0.0.1, at a free port, until it is destroyed. The address has a secret in it, since other
// users of this machine reach the port too.
class PageServer {
 public:
  // Throws Error when no port is to be had.
  PageServer();
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  // "http://127.0.0.1:40123/0123…/"
  const std::string& address() const;
  // From now on these are served: the page, and its data beside it as data.json. Any thread.
  void set(std::string page, std::string data);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace remote::cli
