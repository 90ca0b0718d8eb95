#pragma once

#include <string>
#include <vector>

#include "wire/jobs.hpp"

// Requests about TCP ports of a server.

namespace remote::wire {

// Lists the addresses of the sockets that listen on a port.
struct ListenersRequest {
  static constexpr std::string_view kind = "listeners";

  int port = 0;

  static constexpr auto fields() {
    return field_list(field("port", &ListenersRequest::port, in_range(1, 65535)));
  }
};

struct ListenersReply {
  static constexpr std::string_view kind = "listeners";

  std::vector<std::string> addresses{};  // "0.0.0.0" and "::" mean all addresses

  static constexpr auto fields() {
    return field_list(field("addresses", &ListenersReply::addresses, a_word(".:", 64)));
  }
};

// The port of a job with web pages (TensorBoard or Jupyter).
struct WebPortRequest {
  static constexpr std::string_view kind = "web_port";

  JobsPlace place;
  std::string id;

  static constexpr auto fields() {
    return field_list(field("place", &WebPortRequest::place), field("id", &WebPortRequest::id, an_id()));
  }
};

struct WebPortReply {
  static constexpr std::string_view kind = "web_port";

  int port = 0;  // 0 until a process of this user listens on it
  std::string token{};

  static constexpr auto fields() {
    return field_list(field("port", &WebPortReply::port, in_range(0, 65535)),
                      field("token", &WebPortReply::token, a_word("")));
  }
};

}  // namespace remote::wire
