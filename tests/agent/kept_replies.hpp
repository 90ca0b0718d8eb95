#pragma once

#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "agent/serve/stream.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"

namespace remote::agent::test {

// Stores an answer that has parts of one type. Each part must fit into a message and arrive complete.
template <typename Part>
class KeptReplies : public Stream {
 public:
  void send(const wire::Reply& reply) override {
    const wire::Bytes bytes = wire::encode(reply);
    EXPECT_LE(bytes.size(), wire::max_payload);
    parts_.push_back(std::get<Part>(wire::decode<wire::Reply>(bytes)));
  }
  bool is_closed() const override { return false; }
  std::vector<Part>& parts() { return parts_; }

 private:
  std::vector<Part> parts_;
};

}  // namespace remote::agent::test
