#include "ssh/mux_agent.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"

namespace remote::ssh {
MuxAgent::MuxAgent(const std::filesystem::path& control, const std::filesystem::path& socket,
                   std::set<std::string> permissions, std::chrono::milliseconds limit, const Cancel& cancel)
    : socket_(socket.string()),
      permissions_(std::move(permissions)),
      // sshd creates it with mode 0600, and does not replace an existing file.
      reverse_(control, {0, "/tmp/.remote-agent-" + random_hex(32)}, limit, cancel) {}

bool MuxAgent::serve() {
  bool done = false;
  while (UniqueFd fd = reverse_.accept()) {
    if (links_.size() < most_agent_links) {
      links_.push_back({std::move(fd), AgentLink()});
    }
    done = true;
  }
  for (Link& link : links_) {
    std::array<char, 4096> piece{};
    const ssize_t got = uninterrupted([&] { return ::read(link.fd.get(), piece.data(), piece.size()); });
    if (got > 0) {
      link.talk.hear({piece.data(), static_cast<std::size_t>(got)});
    } else if (got == 0 || !would_block()) {
      link.talk.end();
    }
    done = link.talk.serve(socket_, permissions_) || got > 0 || done;
    std::string& unsent = link.talk.unsent();
    if (!unsent.empty()) {
      const ssize_t sent =
          uninterrupted([&] { return ::write(link.fd.get(), unsent.data(), unsent.size()); });
      if (sent < 0 && !would_block()) {
        link.talk.end();
      }
      unsent.erase(0, static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
      done = done || sent > 0;
    }
  }
  return std::erase_if(links_, [](const Link& link) { return link.talk.ended(); }) > 0 || done;
}

void MuxAgent::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({reverse_.fd(), POLLIN, 0});
  for (const Link& link : links_) {
    fds.push_back({link.fd.get(), POLLIN, 0});
    link.talk.add_to(fds);
  }
}

}  // namespace remote::ssh
