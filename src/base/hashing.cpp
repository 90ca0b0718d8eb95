#include "base/hashing.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <random>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <remote/error.hpp>

#include "base/strings.hpp"

namespace remote {
namespace {

// libcrypto fails if it runs out of memory, or if the system's policy forbids the digest.
void require(bool well) {
  if (!well) {
    throw Error("cannot compute a digest", "libcrypto refused it").mended_by(Remedy::report_bug);
  }
}

const unsigned char* bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  require(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

Sha256& Sha256::add(std::string_view data) {
  require(EVP_DigestUpdate(context_.get(), data.data(), data.size()) == 1);
  return *this;
}

Sha256& Sha256::add_field(std::string_view field) {
  return add(std::to_string(field.size()) + ":").add(field);
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  return to_hex(digest);
}

std::string sha256_hex(std::string_view data) {
  return Sha256().add(data).hex();
}

std::string sha1_hex(std::string_view data) {
  std::array<unsigned char, 20> digest{};
  require(EVP_Digest(data.data(), data.size(), digest.data(), nullptr, EVP_sha1(), nullptr) == 1);
  return to_hex(digest);
}

std::string hmac_sha1(std::string_view key, std::string_view data) {
  std::string digest(20, '\0');
  require(HMAC(EVP_sha1(), key.data(), static_cast<int>(key.size()), bytes(data), data.size(), bytes(digest),
               nullptr) != nullptr);
  return digest;
}

std::string base64_encode(std::string_view data) {
  std::string text((data.size() + 2) / 3 * 4,
                   '\0');  // libcrypto appends a NUL, for which std::string has space
  EVP_EncodeBlock(bytes(text), bytes(data), static_cast<int>(data.size()));
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  text = text.substr(0, text.find_last_not_of('=') + 1);
  // libcrypto accepts padding anywhere, ignores spaces at both ends, and requires groups of four.
  const bool clean =
      std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '/'; });
  const std::size_t missing = (4 - text.size() % 4) % 4;
  const std::string padded = std::string(text).append(missing, '=');
  std::string data(padded.size() / 4 * 3, '\0');
  if (!clean || missing == 3 ||
      EVP_DecodeBlock(bytes(data), bytes(padded), static_cast<int>(padded.size())) < 0) {
    return std::nullopt;
  }
  data.resize(data.size() - missing);
  return data;
}

std::string random_hex(std::size_t digits) {
  // std::random_device reads the kernel's random source on Linux (libstdc++) and macOS (libc++).
  std::random_device source;
  std::string text;
  while (text.size() < digits) {
    text += fmt::format("{:08x}", source());
  }
  return text.substr(0, digits);
}

std::uint32_t random_between(std::uint32_t low, std::uint32_t high) {
  std::random_device source;
  return std::uniform_int_distribution<std::uint32_t>(low, high)(source);
}

}  // namespace remote
