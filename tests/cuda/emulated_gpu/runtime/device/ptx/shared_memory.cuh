#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

inline Word shared_address(const void* pointer) {
  return static_cast<Word>(static_cast<const char*>(pointer) -
                           emulated::Block::current->shared_begin());
}

template <class T>
T load_shared(Word address) {
  T value;
  std::memcpy(&value, emulated::Block::current->shared(address, sizeof value), sizeof value);
  return value;
}
template <class T>
void store_shared(Word address, const T& value) {
  std::memcpy(emulated::Block::current->shared(address, sizeof value), &value, sizeof value);
  ++emulated::Block::current->units.unseen[address / 16];
  emulated::Block::thread->units.written.push_back(address / 16);
}

template <unsigned count>
void load_matrices(Word (&to)[count], Word address) {
  const auto all = emulated::Block::current->exchange(address);
  const unsigned lane = emulated::Block::thread->lane();
  for (unsigned i = 0; i < count; ++i) {
    const Word row = emulated::shown<Word>(all, 8 * i + lane / 4);
    std::memcpy(&to[i], emulated::Block::current->shared(row, 16) + lane % 4 * 4, 4);
  }
}

template <unsigned count>
void load_matrices_transposed(Word (&to)[count], Word address) {
  const auto all = emulated::Block::current->exchange(address);
  const unsigned lane = emulated::Block::thread->lane();
  for (unsigned i = 0; i < count; ++i) {
    std::uint16_t halves[2];
    for (unsigned h = 0; h < 2; ++h) {
      const Word row = emulated::shown<Word>(all, 8 * i + lane % 4 * 2 + h);
      std::memcpy(&halves[h], emulated::Block::current->shared(row, 16) + lane / 4 * 2, 2);
    }
    to[i] = halves[0] | static_cast<Word>(halves[1]) << 16;
  }
}

inline void store_matrices(Word address, const Word (&from)[4]) {
  const auto all = emulated::Block::current->exchange(address);
  const unsigned lane = emulated::Block::thread->lane();
  for (unsigned i = 0; i < 4; ++i) {
    const Word row = emulated::shown<Word>(all, 8 * i + lane / 4);
    emulated::Block::current->shared(row, 16);
    store_shared(row + lane % 4 * 4, from[i]);
  }
}

inline void store_matrices_transposed(Word address, const Word (&from)[4]) {
  const auto all = emulated::Block::current->exchange(address);
  const unsigned lane = emulated::Block::thread->lane();
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned h = 0; h < 2; ++h) {
      const Word row = emulated::shown<Word>(all, 8 * i + lane % 4 * 2 + h);
      emulated::Block::current->shared(row, 16);
      store_shared(row + lane / 4 * 2, static_cast<std::uint16_t>(from[i] >> 16 * h));
    }
  }
}

inline void load_two_matrices(Word (&to)[2], Word address) {
  load_matrices(to, address);
}
inline void load_two_matrices_transposed(Word (&to)[2], Word address) {
  load_matrices_transposed(to, address);
}

template <class T>
T load_element(Word address) {
  return load_shared<T>(address);
}
inline Word load_word(Word address) {
  return load_shared<Word>(address);
}
inline uint2 load_words(Word address) {
  return load_shared<uint2>(address);
}
inline uint4 load_chunk(Word address) {
  return load_shared<uint4>(address);
}
inline void store_word(Word address, Word value) {
  store_shared(address, value);
}
inline void store_chunk(Word address, uint4 value) {
  store_shared(address, value);
}
inline void store_words(Word address, Word first, Word second) {
  store_shared(address, uint2{first, second});
}

}  // namespace strobe::cuda::ptx
