#include "servers/listeners.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <remote/error.hpp>

#include "servers/agent.hpp"

namespace remote::servers {
namespace {

bool is_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

}  // namespace

std::vector<std::string> list_listeners(ssh::Connection& connection, int port, const Cancel& cancel) {
  AgentQuestion question;
  question.what = "addresses of a port";
  question.request = wire::ListenersRequest{port};
  question.timeout = std::chrono::seconds(10);
  auto reply = take_reply<wire::ListenersReply>(ask_agent(connection, question, cancel));
  if (!std::ranges::all_of(reply.addresses, is_address)) {
    throw Error("the server's answer is not understood", "an address in it is wrong")
        .mended_by(Remedy::tell_more);
  }
  return std::move(reply.addresses);
}

}  // namespace remote::servers
