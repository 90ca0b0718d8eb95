#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace remote {

// SHA-256 (FIPS 180-4) of what is added, for digests that are kept and compared.
class Sha256 {
 public:
  Sha256();
  Sha256& add(std::string_view data);
  // Adds the text's length and the text: "ab","c" and "a","bc" then differ.
  Sha256& add_field(std::string_view field);
  // 64 lower-case hexadecimal digits. Call once.
  std::string hex();

 private:
  void block(const unsigned char* data);

  std::array<std::uint32_t, 8> state_;
  std::array<unsigned char, 64> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t total_ = 0;
};

std::string sha256_hex(std::string_view data);

}  // namespace remote
