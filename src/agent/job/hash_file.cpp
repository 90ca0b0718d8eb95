#include "agent/job/hash_file.hpp"

#include <array>
#include <cstdint>

#include <sodium.h>

#include "base/strings.hpp"

namespace remote::agent {

std::string hash_file(const RegularFile& file) {
  if (!file) {
    return "";
  }
  crypto_hash_sha256_state state;
  ::crypto_hash_sha256_init(&state);
  std::array<unsigned char, 65536> buffer{};
  std::uint64_t offset = 0;
  while (const std::size_t count = file.read(buffer.data(), buffer.size(), offset)) {
    ::crypto_hash_sha256_update(&state, buffer.data(), count);
    offset += count;
  }
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  ::crypto_hash_sha256_final(&state, hash.data());
  return to_hex(hash);
}

std::string hash_text(std::string_view text) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  ::crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  return to_hex(hash);
}

}  // namespace remote::agent
